import { APP_FILTER } from '@nestjs/core';
import { Int, Mutation, Query, Resolver } from '@nestjs/graphql';
import { currentLease, LockExceptionFilter } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { Gate } from '../nest/gate.js';
import { eventually } from '../support/eventually.js';
import { startRedis } from '../support/redis-server.js';
import { serveGraphql } from './graphql-app.js';
import { lockAmong, place, type Order } from './place.js';

const SECRET = 'order-of-alice';

function orders(order: Order) {
  @Resolver()
  class OrderResolver {
    readonly gate = new Gate();
    error: Error | undefined;

    @lockAmong(order, { value: SECRET, retryCount: 1, keyTimeout: 60_000 }, Mutation(() => String, { nullable: true }))
    async buy() {
      await this.gate.pass();
      if (this.error) throw this.error;
      return currentLease()?.key;
    }

    @Query(() => Int)
    async arrived() {
      return this.gate.arrived;
    }
  }
  return OrderResolver;
}

async function serve(order: Order, providers: object[], store?: ReturnType<typeof redisStore>) {
  const resolver = orders(order);
  const served = await serveGraphql({ providers: [resolver, ...(providers as [])] }, store && { store });
  return { ...served, resolver: served.get(resolver) };
}

place('GraphQL', 'contention and outage, reported in the errors of the response', (order) => {
  it('answers the field with an error while another request is in, and runs nothing', async () => {
    const { query, resolver, acquired } = await serve(order, []);
    const first = query('mutation { buy }');
    await eventually(() => resolver.gate.arrived === 1);
    const refused = await query('mutation { buy }');
    expect(refused).toMatchObject({ status: 200, data: { buy: null }, errors: [{ path: ['buy'] }] });
    resolver.gate.open();
    expect((await first).data).toEqual({ buy: `${SECRET}-locks` });
    expect([resolver.gate.arrived, acquired]).toEqual([1, [`${SECRET}-locks`]]);
  });

  it('answers the field with an error while Redis is away, and runs nothing', async () => {
    const redis = await startRedis({ port: 'free' });
    const store = redisStore({ options: { ...redis.connection, disconnectTimeout: 10 }, requestTimeout: 500 });
    const { query, resolver } = await serve(order, [], store);
    resolver.gate.open();
    expect((await query('mutation { buy }')).data).toEqual({ buy: `${SECRET}-locks` });
    await redis.kill();
    expect(await query('mutation { buy }')).toMatchObject({ status: 200, data: { buy: null }, errors: [{ path: ['buy'] }] });
    expect(resolver.gate.arrived).toBe(1);
    await redis.stop();
  });
});

place('GraphQL', 'LockExceptionFilter, bound to the app: 423 and 503 in the extensions, and no key', (order) => {
  const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };

  it('says 423 while another request is in', async () => {
    const { query, resolver } = await serve(order, [filter]);
    const first = query('mutation { buy }');
    await eventually(() => resolver.gate.arrived === 1);
    const refused = await query('mutation { buy }');
    expect(refused).toMatchObject({ status: 200, data: { buy: null }, errors: [{ path: ['buy'] }] });
    expect(refused.errors?.[0]?.extensions).toMatchObject({ status: 423, originalError: { code: 'LOCK_TIMEOUT' } });
    expect(JSON.stringify(refused)).not.toContain(SECRET);
    resolver.gate.open();
    expect((await first).data).toEqual({ buy: `${SECRET}-locks` });
    expect(resolver.gate.arrived).toBe(1);
  });

  it('says 503 while Redis is away', async () => {
    const store = redisStore({ options: { path: '/nobody/listens/here.sock', disconnectTimeout: 10 }, requestTimeout: 100 });
    const { query, resolver } = await serve(order, [filter], store);
    const refused = await query('mutation { buy }');
    expect(refused.errors?.[0]?.extensions).toMatchObject({ status: 503, originalError: { code: 'LOCK_STORE' } });
    expect(JSON.stringify(refused)).not.toContain(SECRET);
    expect(resolver.gate.arrived).toBe(0);
  });

  it('leaves the errors of the method alone', async () => {
    const { query, resolver } = await serve(order, [filter]);
    resolver.error = new Error('sold out');
    resolver.gate.open();
    expect(await query('mutation { buy }')).toMatchObject({ data: { buy: null }, errors: [{ message: 'sold out', path: ['buy'] }] });
  });
});
