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
  Redirect,
  Res,
  SetMetadata,
  UseGuards,
  UseInterceptors,
  UsePipes,
  ValidationPipe,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { IsInt, IsString, Min } from 'class-validator';
import { map, Observable, of } from 'rxjs';
import { currentLease } from 'nestjs-distributed-lock';
import { Tally } from '../nest/tally.js';
import { ADAPTERS, serve } from './http-app.js';
import { lockAmong, place } from './place.js';

const LONG = { keyTimeout: 60_000, waitTimeout: 20_000 };
/** The key of the lock that the caller is in. */
const key = () => currentLease()?.key ?? 'unlocked';

class Order {
  @IsString()
  sku!: string;
  @IsInt()
  @Min(1)
  units!: number;
}

/** Lets in who has the role that the handler names, and notes whether a lock is held meanwhile. */
class RoleGuard implements CanActivate {
  static seen: string[] = [];
  private readonly reflector = new Reflector();
  canActivate(context: ExecutionContext): boolean {
    RoleGuard.seen.push(key());
    const role = this.reflector.get<string>('role', context.getHandler());
    return context.switchToHttp().getRequest<{ headers: Record<string, string> }>().headers.role === role;
  }
}

class Wrap implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ wrapped: data, after: key() })));
  }
}

place('HTTP', '@Get with pipes on @Param and @Query, on Express and Fastify', (order) => {
  @Controller()
  class StockController {
    @lockAmong(order, { value: 'stock', key: (id: string) => id, ...LONG }, Get('stock/:id'), HttpCode(202), Header('X-Shelf', 'top'))
    async one(@Param('id', ParseIntPipe) id: number, @Query('units', ParseIntPipe) units: number) {
      return { twice: id * 2, units, key: key() };
    }

    @lockAmong(order, { value: 'digest', paramLock: true, ...LONG }, Get('digest/:id'))
    async digest(@Param('id', ParseIntPipe) id: number) {
      return { id, key: key() };
    }
  }

  it.each(ADAPTERS)('locks once, by what the pipes made of the parameters, and keeps status and headers (%s)', async (adapter) => {
    const { ask, acquired, isTaken } = await serve(adapter, { controllers: [StockController] });
    const answer = await ask('stock/21?units=3');
    expect([answer.status, answer.headers.get('x-shelf'), answer.body]).toEqual([
      202,
      'top',
      { twice: 42, units: 3, key: 'stock-21-locks' },
    ]);
    expect(acquired).toEqual(['stock-21-locks']);
    expect(await isTaken('stock-21-locks')).toBe(false);
  });

  it.each(ADAPTERS)('digests the parameters after the pipes, so that 07 and 7 are the same (%s)', async (adapter) => {
    const { ask, acquired } = await serve(adapter, { controllers: [StockController] });
    const keys = (await Promise.all(['7', '07', '8'].map((id) => ask(`digest/${id}`)))).map(({ body }) => (body as { key: string }).key);
    expect(keys[0]).toMatch(/^digest-[0-9a-f]{32}-locks$/);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
    expect(acquired.toSorted()).toEqual(keys.toSorted());
  });

  it.each(ADAPTERS)('does not lock for a request that a pipe refuses (%s)', async (adapter) => {
    const { ask, acquired } = await serve(adapter, { controllers: [StockController] });
    expect((await ask('stock/many?units=3')).status).toBe(400);
    expect(acquired).toEqual([]);
  });
});

place('HTTP', '@Post with a validated @Body, on Express and Fastify', (order) => {
  @Controller()
  class OrderController {
    readonly tally = new Tally();

    @lockAmong(
      order,
      { value: 'order', key: (o: Order) => o.sku, ...LONG },
      Post('orders'),
      UsePipes(new ValidationPipe({ transform: true })),
    )
    async order(@Body() body: Order) {
      return { isOrder: body instanceof Order, ordered: body.units, key: key(), count: await this.tally.add() };
    }
  }

  it.each(ADAPTERS)('locks once, by the validated body (%s)', async (adapter) => {
    const { post, acquired } = await serve(adapter, { controllers: [OrderController] });
    const { status, body } = await post('orders', { sku: 'apple', units: 2 });
    expect([status, body]).toEqual([201, { isOrder: true, ordered: 2, key: 'order-apple-locks', count: 1 }]);
    expect((await post('orders', { sku: 'apple', units: 0 })).status).toBe(400);
    expect(acquired).toEqual(['order-apple-locks']);
  });

  it.each(ADAPTERS)('lets one request in at a time (%s)', async (adapter) => {
    const { post, get, acquired } = await serve(adapter, { controllers: [OrderController] });
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('orders', { sku: 'apple', units: 1 })));
    expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(201));
    expect(get(OrderController).tally).toMatchObject({ value: 8, most: 1 });
    expect(acquired).toEqual(Array(8).fill('order-apple-locks'));
  });
});

place('HTTP', 'guards, interceptors and metadata of a handler, on Express and Fastify', (order) => {
  @Controller()
  class ClerkController {
    @lockAmong(order, { value: 'clerk', ...LONG }, UseGuards(RoleGuard), UseInterceptors(Wrap), SetMetadata('role', 'clerk'), Get('clerk'))
    async clerk() {
      return { key: key() };
    }
  }

  it.each(ADAPTERS)('locks after the guard has let the request in, and inside the interceptor (%s)', async (adapter) => {
    RoleGuard.seen = [];
    const { ask, acquired } = await serve(adapter, { controllers: [ClerkController] });
    expect((await ask('clerk')).status).toBe(403);
    expect(acquired).toEqual([]);
    const { status, body } = await ask('clerk', { headers: { role: 'clerk' } });
    expect([status, body]).toEqual([200, { wrapped: { key: 'clerk-locks' }, after: 'unlocked' }]);
    expect(acquired).toEqual(['clerk-locks']);
    expect(RoleGuard.seen).toEqual(['unlocked', 'unlocked']);
  });
});

place('HTTP', '@Redirect and @Res({ passthrough: true }), on Express and Fastify', (order) => {
  interface Reply {
    header(name: string, value: string): unknown;
  }

  @Controller()
  class ShopController {
    @lockAmong(order, { value: 'old', ...LONG }, Get('old'), Redirect('/new', 302))
    async old() {
      return { url: `/new?key=${key()}`, statusCode: 307 };
    }

    @lockAmong(order, { value: 'reply', ...LONG }, Post('reply'))
    async reply(@Res({ passthrough: true }) reply: Reply) {
      reply.header('X-Key', key());
      return { done: true };
    }
  }

  it.each(ADAPTERS)('locks once, and what the handler says of the answer is done (%s)', async (adapter) => {
    const { ask, post, acquired } = await serve(adapter, { controllers: [ShopController] });
    const moved = await ask('old');
    expect([moved.status, moved.headers.get('location')]).toEqual([307, '/new?key=old-locks']);
    const done = await post('reply');
    expect([done.status, done.headers.get('x-key'), done.body]).toEqual([201, 'reply-locks', { done: true }]);
    expect(acquired).toEqual(['old-locks', 'reply-locks']);
  });
});

place('HTTP', 'a handler that returns an Observable, on Express and Fastify', (order) => {
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
