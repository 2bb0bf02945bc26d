import {
  Body,
  Controller,
  Get,
  HttpCode,
  Inject,
  Param,
  ParseIntPipe,
  Post,
  Scope,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  ValidationPipe,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { APP_INTERCEPTOR, Reflector, REQUEST } from '@nestjs/core';
import { IsInt, IsString, Min } from 'class-validator';
import { Observable, of } from 'rxjs';
import { currentLease, DistributedLock, DistributedLockInterceptor } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { boot, listen, type Booted } from './boot.js';
import { Gate } from './gate.js';

class Order {
  @IsString()
  sku!: string;
  @IsInt()
  @Min(1)
  units!: number;
}

class RoleGuard implements CanActivate {
  constructor(@Inject(Reflector) private readonly reflector: Reflector) {}
  canActivate(context: ExecutionContext): boolean {
    const role = this.reflector.get<string>('role', context.getHandler());
    return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers.role === role;
  }
}

/** The key of the lock that the caller is in. */
const key = () => currentLease()?.key;

@Controller('stock')
class StockController {
  gate = new Gate();
  visits: string[] = [];

  @Get('below/:id')
  @DistributedLock<StockController['below']>({ key: (id) => id })
  async below(@Param('id', ParseIntPipe) id: number) {
    return { id, twice: id * 2, key: key() };
  }

  @DistributedLock<StockController['above']>({ key: (id) => id })
  @Get('above/:id')
  @HttpCode(202)
  async above(@Param('id', ParseIntPipe) id: number) {
    return { id, twice: id * 2, key: key() };
  }

  @Post('orders')
  @DistributedLock({ value: 'order', paramLock: ['0.sku'] })
  async order(@Body(new ValidationPipe({ transform: true })) order: Order) {
    return { isOrder: order instanceof Order, units: order.units, key: key() };
  }

  @UseGuards(RoleGuard)
  @DistributedLock()
  @SetMetadata('role', 'clerk')
  @Get('guarded')
  async guarded() {
    return { key: key() };
  }

  @UseInterceptors(DistributedLockInterceptor)
  @DistributedLock({ reentrant: false, waitTimeout: 0 })
  @Get('once')
  async once() {
    return { key: key() };
  }

  @UseInterceptors(DistributedLockInterceptor)
  @Get('unlocked')
  async unlocked() {
    return { key: key() ?? 'none' };
  }

  @Get('observable')
  @DistributedLock()
  observable(): Observable<object> {
    return of({ key: key() });
  }

  @Post('slow/:id')
  @DistributedLock({ paramLock: true, waitTimeout: 0 })
  async slow(@Param('id') id: string) {
    this.visits.push(id);
    await this.gate.pass();
    return { key: key() };
  }
}

describe('a locked method of a controller', () => {
  let booted: Booted;
  let url: string;

  async function serve(metadata: Parameters<typeof boot>[0] = {}) {
    booted = await boot({ controllers: [StockController], ...metadata });
    url = `${await listen(booted.app)}/stock`;
  }
  async function ask(path: string, init?: RequestInit) {
    const response = await fetch(`${url}/${path}`, { ...init, headers: { 'content-type': 'application/json', ...init?.headers } });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
  const post = (path: string, body: unknown) => ask(path, { method: 'POST', body: JSON.stringify(body) });

  it('is routed to, and locked by what its pipes made of the parameters, below @Get', async () => {
    await serve();
    expect(await ask('below/21')).toEqual({ status: 200, body: { id: 21, twice: 42, key: 'StockController.below-21-locks' } });
  });

  it('is routed to, with its status, and locked by what its pipes made of the parameters, above @Get', async () => {
    await serve();
    expect(await ask('above/21')).toEqual({ status: 202, body: { id: 21, twice: 42, key: 'StockController.above-21-locks' } });
  });

  it('is not locked for a request that a pipe refuses', async () => {
    await serve();
    expect((await ask('below/many')).status).toBe(400);
    expect((await post('orders', { sku: 'apple', units: 0 })).status).toBe(400);
    expect(booted.acquired).toEqual([]);
  });

  it('gets the validated body, of which a path takes part in the key', async () => {
    await serve();
    const [one, more, other] = [
      await post('orders', { sku: 'apple', units: 1 }),
      await post('orders', { sku: 'apple', units: 5 }),
      await post('orders', { sku: 'pear', units: 1 }),
    ];
    expect(one).toEqual({ status: 201, body: { isOrder: true, units: 1, key: expect.stringMatching(/^order-[0-9a-f]{32}-locks$/) } });
    expect([more.body.units, more.body.key]).toEqual([5, one.body.key]);
    expect(other.body.key).not.toBe(one.body.key);
  });

  it('is not locked for a request that a guard refuses, who sees its metadata', async () => {
    await serve();
    expect((await ask('guarded')).status).toBe(403);
    expect(booted.acquired).toEqual([]);
    expect(await ask('guarded', { headers: { role: 'clerk' } })).toEqual({ status: 200, body: { key: 'StockController.guarded-locks' } });
  });

  it('is locked once where DistributedLockInterceptor is bound as well', async () => {
    await serve();
    expect(await ask('once')).toEqual({ status: 200, body: { key: 'StockController.once-locks' } });
    expect(booted.acquired).toEqual(['StockController.once-locks']);
  });

  it('is locked once where DistributedLockInterceptor is bound to the whole app', async () => {
    await serve({ controllers: [StockController], providers: [{ provide: APP_INTERCEPTOR, useClass: DistributedLockInterceptor }] });
    expect((await ask('once')).status).toBe(200);
    expect((await ask('below/1')).status).toBe(200);
    expect(booted.acquired).toEqual(['StockController.once-locks', 'StockController.below-1-locks']);
  });

  it('is not locked by the interceptor alone', async () => {
    await serve();
    expect(await ask('unlocked')).toEqual({ status: 200, body: { key: 'none' } });
    expect(booted.acquired).toEqual([]);
  });

  it('may return an Observable', async () => {
    await serve();
    expect(await ask('observable')).toEqual({ status: 200, body: { key: 'StockController.observable-locks' } });
    expect(await booted.isTaken('StockController.observable-locks')).toBe(false);
  });

  it('is locked in request scope, between requests too', async () => {
    const gate = new Gate();
    @Controller({ path: 'stock', scope: Scope.REQUEST })
    class RequestController {
      constructor(@Inject(REQUEST) private readonly request: { url: string }) {}
      @Get('scoped')
      @DistributedLock({ value: 'scoped', waitTimeout: 0, onTimeout: () => ({ key: 'busy' }) })
      async scoped() {
        await gate.pass();
        return { key: key(), url: this.request.url };
      }
    }
    await serve({ controllers: [RequestController] });
    const first = ask('scoped');
    await eventually(() => gate.arrived === 1);
    expect((await ask('scoped')).body).toEqual({ key: 'busy' });
    gate.open();
    expect((await first).body).toEqual({ key: 'scoped-locks', url: '/stock/scoped' });
    expect(gate.arrived).toBe(1);
  });

  it('is held by one request for a key, and by requests for other keys beside it', async () => {
    await serve();
    const controller = booted.get(StockController);
    const running = [ask('slow/1', { method: 'POST' }), ask('slow/2', { method: 'POST' })];
    await eventually(() => controller.visits.length === 2);
    expect((await ask('slow/1', { method: 'POST' })).status).toBe(500);
    expect(controller.visits.toSorted()).toEqual(['1', '2']);
    controller.gate.open();
    expect((await Promise.all(running)).map(({ status }) => status)).toEqual([201, 201]);
    expect((await ask('slow/1', { method: 'POST' })).status).toBe(201);
  });
});
