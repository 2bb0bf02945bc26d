import type { ArgumentsHost, INestApplication, ModuleMetadata, PipeTransform } from '@nestjs/common';
import { Catch, Controller, Injectable, UseFilters } from '@nestjs/common';
import {
  BaseRpcExceptionFilter,
  ClientProxyFactory,
  Ctx,
  EventPattern,
  MessagePattern,
  Payload,
  RpcException,
  type BaseRpcContext,
  type ClientProxy,
  type MicroserviceOptions,
  type RedisOptions,
  type TcpOptions,
} from '@nestjs/microservices';
import { firstValueFrom, map, Observable, of, toArray } from 'rxjs';
import { DistributedLock, LockError, LockTimeoutError, type LockStore } from 'nestjs-distributed-lock';
import { boot } from '../nest/boot.js';
import { Gate } from '../support/gate.js';
import { key, lockAmong, type Order } from './ways.js';

const LONG = { keyTimeout: 60_000 };

@Injectable()
class TrimPipe implements PipeTransform {
  transform(value: { sku: string }): { sku: string } {
    return { ...value, sku: value.sku.trim() };
  }
}

export interface Sale {
  id: string;
  sku: string;
  units: number;
}

/** A controller with a locked handler of each kind. */
export function deskOf(order: Order) {
  @Controller()
  class Desk {
    readonly gate = new Gate();
    readonly seen: unknown[] = [];

    @lockAmong(order, { ...LONG, value: 'reduce', paramLock: ['0.sku'] }, MessagePattern('reduce'))
    async reduce(@Payload(TrimPipe) { sku }: { sku: string }, @Ctx() context: BaseRpcContext) {
      return { sku, key: key(), context: context.getArgs().length > 0 };
    }

    @lockAmong(order, LONG, MessagePattern('count'))
    count(@Payload() units: number[]): Observable<object> {
      return of(...units).pipe(map((unit) => ({ unit, key: key() })));
    }

    @lockAmong(order, LONG, MessagePattern('refuse'))
    async refuse() {
      throw new RpcException({ code: 409, message: `sold out under ${key()}` });
    }

    @lockAmong(order, { ...LONG, key: (id: string) => id, waitTimeout: 0 }, MessagePattern('slow'))
    async slow(@Payload() id: string) {
      this.seen.push(id);
      await this.gate.pass();
      return key();
    }

    @lockAmong(order, { ...LONG, waitTimeout: Infinity, retryInterval: 10 }, EventPattern<string>('sold'))
    async sold(@Payload() id: string, @Ctx() context: BaseRpcContext) {
      await new Promise((resolve) => setImmediate(resolve));
      this.seen.push([id, key(), context.getArgs().length > 0]);
    }
  }
  return Desk;
}

// #region rpc-filter
/** Answers `BUSY` to a client whose lock was taken. Without a filter the client gets an internal error. */
@Catch(LockError)
export class BusyFilter extends BaseRpcExceptionFilter {
  override catch(error: LockError, host: ArgumentsHost): Observable<unknown> {
    const isBusy = error instanceof LockTimeoutError;
    return super.catch(isBusy ? new RpcException({ status: 'error', code: 'BUSY', message: 'Try again.' }) : error, host);
  }
}
// #endregion

@Controller()
// #region rpc-handlers
@UseFilters(BusyFilter)
export class StockController {
  readonly sales: string[] = [];

  /** The client waits for the reply, so the wait timeout is shorter than the client's. */
  @MessagePattern('stock.reduce')
  @DistributedLock<StockController['reduce']>({ value: 'stock', key: ({ sku }) => sku, keyTimeout: 10_000, waitTimeout: 3_000 })
  async reduce(@Payload() { sku, units }: Sale): Promise<number> {
    return this.take(sku, units);
  }

  /** Over Redis every instance receives the event: one of them handles it, the others skip it. */
  @EventPattern('stock.sold')
  @DistributedLock<StockController['onSold']>({
    value: 'sold',
    key: ({ id }) => id,
    keyTimeout: 10_000,
    minHold: 60_000,
    waitTimeout: 0,
    onTimeout: 'skip',
  })
  async onSold(@Payload() { sku, units }: Sale): Promise<void> {
    await this.take(sku, units);
  }
  // #endregion

  private async take(sku: string, units: number): Promise<number> {
    this.sales.push(`${units} ${sku} under ${key()}`);
    return units;
  }
}

const clients: ClientProxy[] = [];

/** Its overloads take no union. */
export const clientOf = (transport: TcpOptions | RedisOptions): ClientProxy =>
  ClientProxyFactory.create(transport as never) as unknown as ClientProxy;

/** An app that answers over HTTP and over this transport; `closeClients` belongs in an `afterEach`. */
export async function serve(transport: TcpOptions | RedisOptions, metadata: ModuleMetadata, store?: LockStore) {
  const connect = (app: INestApplication) => void app.connectMicroservice<MicroserviceOptions>(transport, { inheritAppConfig: true });
  const booted = await boot(metadata, { store }, connect);
  await booted.app.startAllMicroservices();
  const client = clientOf(transport);
  clients.push(client);
  await client.connect();
  return {
    ...booted,
    /** The reply to a request; rejects with what the client is sent as an error. */
    ask: (pattern: string, data: unknown) => firstValueFrom(client.send<unknown>(pattern, data)),
    /** All replies to a request. */
    all: (pattern: string, data: unknown) => firstValueFrom(client.send<unknown>(pattern, data).pipe(toArray())),
    tell: async (pattern: string, data: unknown) =>
      void (await firstValueFrom(client.emit<unknown>(pattern, data), { defaultValue: undefined })),
  };
}

export async function closeClients(): Promise<void> {
  await Promise.all(clients.splice(0).map(async (client) => client.close()));
}
