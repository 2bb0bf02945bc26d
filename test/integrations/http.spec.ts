import {
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  Param,
  ParseIntPipe,
  Post,
  Query,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  type NestInterceptor,
  type Provider,
  type Type,
} from '@nestjs/common';
import { APP_INTERCEPTOR, Reflector } from '@nestjs/core';
import { IsInt, IsString, Min } from 'class-validator';
import { map, Observable, of } from 'rxjs';
import { DistributedLockInterceptor } from 'nestjs-distributed-lock';
import { SharedCounter } from '../support/shared-counter.js';
import { ADAPTERS, serve } from './http-app.js';
import { key, lockAmong, LONG, aboveAndBelow } from './ways.js';

aboveAndBelow('HTTP', '@Get with pipes on @Param and @Query, on Express and Fastify', (order) => {
  @Controller()
  class StockController {
    @lockAmong(order, { value: 'stock', key: (id: string) => id, ...LONG }, Get('stock/:id'), HttpCode(202), Header('X-Shelf', 'top'))
    async one(@Param('id', ParseIntPipe) id: number, @Query('units', ParseIntPipe) units: number) {
      return { twice: id * 2, units, key: key() };
    }
  }

  it.each(ADAPTERS)('locks once, by what the pipes made of the parameters, and keeps status and headers (%s)', async (adapter) => {
    const { ask, acquired, isTaken } = await serve(adapter, { controllers: [StockController] });
    const { status, headers, body } = await ask('stock/21?units=3');
    expect([status, headers.get('x-shelf'), body]).toEqual([202, 'top', { twice: 42, units: 3, key: 'stock-21-locks' }]);
    expect((await ask('stock/many?units=3')).status).toBe(400);
    expect(acquired).toEqual(['stock-21-locks']);
    expect(await isTaken('stock-21-locks')).toBe(false);
  });
});

aboveAndBelow('HTTP', '@Post with a validated @Body, on Express and Fastify', (order) => {
  class Order {
    @IsString()
    sku!: string;
    @IsInt()
    @Min(1)
    units!: number;
  }
  const validated = UsePipes(new ValidationPipe({ transform: true }));

  @Controller()
  class OrderController {
    readonly counter = new SharedCounter();
    @lockAmong(order, { value: 'order', key: (o: Order) => o.sku, ...LONG }, Post('orders'), validated)
    async order(@Body() body: Order) {
      await this.counter.increment();
      return { isOrder: body instanceof Order, ordered: body.units, key: key() };
    }
  }

  it.each(ADAPTERS)('locks once, by the validated body, and lets one request in at a time (%s)', async (adapter) => {
    const { post, get, acquired } = await serve(adapter, { controllers: [OrderController] });
    expect((await post('orders', { sku: 'apple', units: 0 })).status).toBe(400);
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('orders', { sku: 'apple', units: 2 })));
    const ordered = { status: 201, body: { isOrder: true, ordered: 2, key: 'order-apple-locks' } };
    expect(answers).toMatchObject(Array(8).fill(ordered));
    expect(get(OrderController).counter).toMatchObject({ value: 8, overlaps: 0 });
    expect(acquired).toEqual(Array(8).fill('order-apple-locks'));
  });
});

aboveAndBelow('HTTP', 'guards, interceptors and metadata of a handler, on Express and Fastify', (order) => {
  /** Keys of the locks that the guard was in. */
  const seen: string[] = [];
  beforeEach(() => seen.splice(0));

  /** Lets in the role that the handler names. */
  class RoleGuard implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      seen.push(key());
      const role = new Reflector().get<string>('role', context.getHandler());
      return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers.role === role;
    }
  }
  class Wrap implements NestInterceptor {
    intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
      return next.handle().pipe(map((data: unknown) => ({ wrapped: data, after: key() })));
    }
  }
  @Controller()
  class ClerkController {
    @lockAmong(order, { value: 'clerk', ...LONG }, UseGuards(RoleGuard), UseInterceptors(Wrap), SetMetadata('role', 'clerk'), Get('clerk'))
    async clerk() {
      return { key: key() };
    }
  }

  it.each(ADAPTERS)('locks after the guard has let the request in, and inside the interceptor (%s)', async (adapter) => {
    const { ask, acquired } = await serve(adapter, { controllers: [ClerkController] });
    expect((await ask('clerk')).status).toBe(403);
    expect(acquired).toEqual([]);
    const { status, body } = await ask('clerk', { headers: { role: 'clerk' } });
    expect([status, body]).toEqual([200, { wrapped: { key: 'clerk-locks' }, after: 'unlocked' }]);
    expect(acquired).toEqual(['clerk-locks']);
    expect(seen).toEqual(['unlocked', 'unlocked']);
  });
});

aboveAndBelow('HTTP', 'a handler that returns an Observable, on Express and Fastify', (order) => {
  @Controller()
  class PriceController {
    @lockAmong(order, { value: 'prices', returns: 'observable', ...LONG }, Get('prices'))
    prices() {
      return of({ key: key() });
    }
    @lockAmong(order, { value: 'declared', ...LONG }, Get('declared'))
    declared(): Observable<object> {
      return of({ key: key() });
    }
  }

  it.each(ADAPTERS)('locks once, until the Observable has completed (%s)', async (adapter) => {
    const { ask, acquired, isTaken } = await serve(adapter, { controllers: [PriceController] });
    expect((await ask('prices')).body).toEqual({ key: 'prices-locks' });
    expect((await ask('declared')).body).toEqual({ key: 'declared-locks' });
    expect(acquired).toEqual(['prices-locks', 'declared-locks']);
    expect(await isTaken('prices-locks')).toBe(false);
  });
});

// A decorated handler locks by its own join point: binding the interceptor besides, anywhere, must not lock it twice.
// With `reentrant: false` a handler that is locked twice waits for itself, in vain.
const ONCE = { value: 'once', reentrant: false, waitTimeout: 0, keyTimeout: 60_000 };

aboveAndBelow('HTTP', 'DistributedLockInterceptor bound to the handler, the controller or the app besides: locked once', (order) => {
  @Controller()
  class Plain {
    @lockAmong(order, ONCE, Get('once'))
    async once() {
      return { key: key() };
    }
    @Get('free')
    async free() {
      return { key: key() };
    }
  }
  @UseInterceptors(DistributedLockInterceptor)
  @Controller()
  class ControllerBound extends Plain {}
  @Controller()
  class HandlerBound extends Plain {
    @lockAmong(order, ONCE, UseInterceptors(DistributedLockInterceptor), Get('once'))
    override async once() {
      return { key: key() };
    }
  }
  const globally = (app: INestApplication) => app.useGlobalInterceptors(app.get(DistributedLockInterceptor));

  it.each<[string, Type, Provider[], typeof globally | undefined]>([
    ['the handler', HandlerBound, [], undefined],
    ['the controller', ControllerBound, [], undefined],
    ['APP_INTERCEPTOR', Plain, [{ provide: APP_INTERCEPTOR, useClass: DistributedLockInterceptor }], undefined],
    ['useExisting', Plain, [{ provide: APP_INTERCEPTOR, useExisting: DistributedLockInterceptor }], undefined],
    ['useGlobalInterceptors', Plain, [], globally],
  ])('locks once, bound by %s', async (_how, controller, providers, configure) => {
    const { ask, acquired, isTaken } = await serve('express', { controllers: [controller], providers }, {}, configure);
    expect(await ask('once')).toMatchObject({ status: 200, body: { key: 'once-locks' } });
    expect((await ask('free')).body).toEqual({ key: 'unlocked' });
    expect(acquired).toEqual(['once-locks']);
    expect(await isTaken('once-locks')).toBe(false);
  });
});
