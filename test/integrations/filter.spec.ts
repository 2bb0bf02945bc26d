import { Controller, Get, UseFilters } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { currentLease, LockExceptionFilter } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { Gate } from '../nest/gate.js';
import { eventually } from '../support/eventually.js';
import { startRedis } from '../support/redis-server.js';
import { ADAPTERS, serve } from './http-app.js';
import { lockAmong, place } from './place.js';

const key = () => currentLease()?.key ?? 'unlocked';
const SECRET = 'order-of-alice';

place('HTTP', 'LockExceptionFilter, bound to the app: 423 and 503, on Express and Fastify', (order) => {
  @Controller()
  class OrderController {
    readonly gate = new Gate();

    @lockAmong(order, { value: SECRET, retryCount: 1, keyTimeout: 60_000 }, Get('order'))
    async order() {
      await this.gate.pass();
      return { key: key() };
    }
  }
  const metadata = { controllers: [OrderController], providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }] };

  it.each(ADAPTERS)('answers 423 with Retry-After while another request is in (%s)', async (adapter) => {
    const { ask, get, acquired } = await serve(adapter, metadata);
    const { gate } = get(OrderController);
    const first = ask('order');
    await eventually(() => gate.arrived === 1);
    const refused = await ask('order');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([423, '1']);
    expect(refused.body).toMatchObject({ statusCode: 423, error: 'Locked', code: 'LOCK_TIMEOUT' });
    expect(refused.text).not.toContain(SECRET);
    gate.open();
    expect((await first).body).toEqual({ key: `${SECRET}-locks` });
    expect((await ask('order')).status).toBe(200);
    expect([gate.arrived, acquired]).toEqual([2, [`${SECRET}-locks`, `${SECRET}-locks`]]);
  });

  it.each(ADAPTERS)('answers 503 with Retry-After while Redis is away, and runs nothing (%s)', async (adapter) => {
    const redis = await startRedis({ port: 'free' });
    const store = redisStore({ options: { ...redis.connection, disconnectTimeout: 10 }, requestTimeout: 500 });
    const { ask, get } = await serve(adapter, metadata, { store });
    const { gate } = get(OrderController);
    gate.open();
    expect((await ask('order')).status).toBe(200);
    await redis.kill();
    const refused = await ask('order');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(refused.body).toMatchObject({ statusCode: 503, code: 'LOCK_STORE' });
    expect(refused.text).not.toContain(SECRET);
    expect(gate.arrived).toBe(1);
    await redis.stop();
  });
});

place('HTTP', '@UseFilters(LockExceptionFilter) on a handler, on Express and Fastify', (order) => {
  @Controller()
  class FilteredController {
    readonly gate = new Gate();

    @lockAmong(order, { value: SECRET, retryCount: 1, keyTimeout: 60_000 }, UseFilters(LockExceptionFilter), Get('order'))
    async order() {
      await this.gate.pass();
      return { key: key() };
    }
  }

  it.each(ADAPTERS)('answers 423 with Retry-After while another request is in (%s)', async (adapter) => {
    const { ask, get } = await serve(adapter, { controllers: [FilteredController] });
    const { gate } = get(FilteredController);
    const first = ask('order');
    await eventually(() => gate.arrived === 1);
    const refused = await ask('order');
    expect([refused.status, refused.headers.get('retry-after'), refused.body]).toMatchObject([423, '1', { code: 'LOCK_TIMEOUT' }]);
    gate.open();
    expect((await first).body).toEqual({ key: `${SECRET}-locks` });
    expect(gate.arrived).toBe(1);
  });
});
