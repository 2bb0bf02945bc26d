import { Catch, type ArgumentsHost, type PipeTransform } from '@nestjs/common';
import { BaseWsExceptionFilter, ConnectedSocket, MessageBody, SubscribeMessage, WebSocketGateway, WsException } from '@nestjs/websockets';
import { map, Observable, of } from 'rxjs';
import { LockTimeoutError } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { key, lockAmong, LONG, type Order } from './ways.js';

class UpperCasePipe implements PipeTransform {
  transform(value: string): string {
    return value.toUpperCase();
  }
}

/** A gateway with a locked handler of each kind, for any adapter. */
export function gatewayOf(order: Order) {
  @WebSocketGateway()
  class StockGateway {
    readonly gate = new Gate();
    readonly clients = new Set<unknown>();
    readonly seen: string[] = [];

    @lockAmong(order, { ...LONG, key: (sku: string) => sku }, SubscribeMessage('reduce'))
    async reduce(@MessageBody(UpperCasePipe) sku: string, @ConnectedSocket() client: unknown) {
      this.clients.add(client);
      return { event: 'reduced', data: { sku, key: key() } };
    }

    @lockAmong(order, LONG, SubscribeMessage('count'))
    count(@MessageBody() units: number[]): Observable<object> {
      return of(...units).pipe(map((unit) => ({ event: 'unit', data: { unit, key: key() } })));
    }

    @lockAmong(order, LONG, SubscribeMessage('ack'))
    async ack() {
      return { key: key() };
    }

    @lockAmong(order, LONG, SubscribeMessage('refuse'))
    async refuse() {
      throw new WsException(`sold out under ${key()}`);
    }

    @lockAmong(order, { ...LONG, key: (sku: string) => sku, waitTimeout: 0 }, SubscribeMessage('slow'))
    async slow(@MessageBody() sku: string) {
      this.seen.push(sku);
      await this.gate.pass();
      return { event: 'done', data: key() };
    }
  }
  return StockGateway;
}

// #region ws-filter
/** Answers `BUSY` to a client whose lock was taken, and what Nest answers to all other errors. */
@Catch()
export class BusyWsFilter extends BaseWsExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    const isBusy = error instanceof LockTimeoutError;
    super.catch(isBusy ? new WsException({ status: 'error', code: 'BUSY', message: 'Try again.' }) : error, host);
  }
}
// #endregion
