import { APP_FILTER } from '@nestjs/core';
import { Args, Int, Resolver, Subscription } from '@nestjs/graphql';
import { DistributedLock, LockExceptionFilter, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { serveGraphql } from './graphql-app.js';
import { Channel } from './graphql-channel.js';
import { StockResolver, StockService } from './graphql-docs.js';
import { Subscriber } from './graphql-subscriber.js';
import { key, lockAmong, LONG, aboveAndBelow, type Order } from './ways.js';

const KEY = 'news-locks';
const resolve = (value: number) => value;
const OVER_WS = { subscriptions: { 'graphql-ws': true } };

async function serveNews(order: Order, options: DistributedLockOptions = {}) {
  const lock = { value: 'news', ...LONG, ...options };

  @Resolver()
  class NewsResolver {
    readonly channel = new Channel<number>();
    readonly endings: string[] = [];
    setUp: string | undefined;

    @lockAmong(order, { ...lock, returns: 'iterable' }, Subscription(() => Int, { resolve }))
    news() {
      return this.channel.iterate(0);
    }

    @lockAmong(
      order,
      { ...lock, returns: 'iterable' },
      Subscription(() => Int, {
        resolve: (value: number) => value * 10,
        filter: (value: number, { above }: { above: number }) => value > above,
      }),
    )
    filtered(@Args('above', { type: () => Int }) _above: number) {
      return this.channel.iterate(0);
    }

    @lockAmong(order, lock, Subscription(() => String, { resolve: (value: string) => value }))
    async *counted(@Args('to', { type: () => Int }) to: number) {
      try {
        for (let count = 1; count <= to; count++) yield `${count} ${key()}`;
      } finally {
        this.endings.push(key());
      }
    }

    @lockAmong(order, lock, Subscription(() => Int, { resolve }))
    async setUpOnly() {
      this.setUp = key();
      return this.channel.iterate(0);
    }
  }
  const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };
  const served = await serveGraphql({ providers: [NewsResolver, filter] }, {}, OVER_WS);
  const subscribe = (field = 'news') => new Subscriber(served.url, `subscription { ${field} }`);
  const isFree = () => eventually(async () => !(await served.isTaken(KEY)));
  return { ...served, resolver: served.get(NewsResolver), channel: served.get(NewsResolver).channel, subscribe, isFree };
}

aboveAndBelow('GraphQL', '@Subscription that returns an async iterable: locked while the client is subscribed', (order) => {
  it.each(['complete', 'terminate'] as const)('holds its lock until the client leaves by %s', async (leave) => {
    const { subscribe, channel, acquired, isTaken, isFree } = await serveNews(order);
    const client = subscribe();
    expect(await client.received(1)).toEqual([0]);
    channel.publish(1);
    expect(await client.received(2)).toEqual([0, 1]);
    expect([acquired, channel.begun, await isTaken(KEY)]).toEqual([[KEY], [KEY], true]);
    await client[leave]();
    await isFree();
  });

  it('keeps its filter and its resolve', async () => {
    const { subscribe, channel, acquired, isFree } = await serveNews(order);
    const client = subscribe('filtered(above: 5)');
    await eventually(() => channel.begun.length === 1);
    for (const value of [3, 6, 5, 9]) channel.publish(value);
    expect(await client.received(2)).toEqual([60, 90]);
    expect(acquired).toEqual([KEY]);
    await client.complete();
    await isFree();
  });

  it('holds its lock until an async generator has ended', async () => {
    const { subscribe, resolver, acquired, isFree } = await serveNews(order);
    const client = subscribe('counted(to: 2)');
    await eventually(() => client.isComplete);
    expect(client.values).toEqual([`1 ${KEY}`, `2 ${KEY}`]);
    expect([resolver.endings, acquired]).toEqual([[KEY], [KEY]]);
    await isFree();
  });

  it('is not begun for a subscriber that has left while it waited', async () => {
    const { subscribe, channel, acquired } = await serveNews(order);
    const holder = subscribe();
    await holder.received(1);
    const waiter = subscribe();
    await eventually(() => waiter.isHeard);
    await waiter.complete();
    await holder.complete();
    const third = subscribe();
    await third.received(1);
    expect([waiter.values, channel.begun, acquired]).toEqual([[], [KEY, KEY], [KEY, KEY]]);
  });

  it('sends a subscriber whose wait timeout is over an error with the name of the key, past all filters, or what onTimeout gives', async () => {
    const one = await serveNews(order, { waitTimeout: 0 });
    await one.subscribe().received(1);
    const refused = one.subscribe();
    await eventually(() => refused.errors.length === 1);
    expect(refused.errors).toMatchObject([{ message: expect.stringContaining(KEY) }]);
    expect([refused.values, one.channel.begun]).toEqual([[], [KEY]]);

    const other = await serveNews(order, { waitTimeout: 0, onTimeout: () => -1 });
    await other.subscribe().received(1);
    const answered = other.subscribe();
    await eventually(() => answered.isComplete);
    expect([answered.values, answered.errors, other.channel.begun]).toEqual([[-1], [], [KEY]]);
  });
});

aboveAndBelow('GraphQL', '@Subscription on an async method: only its setting up is locked', (order) => {
  it('releases its lock when the iterable is there', async () => {
    const { subscribe, resolver, channel, acquired, isTaken } = await serveNews(order);
    const clients = [subscribe('setUpOnly'), subscribe('setUpOnly')];
    await Promise.all(clients.map((client) => client.received(1)));
    expect([resolver.setUp, channel.most, await isTaken(KEY)]).toEqual([KEY, 2, false]);
    expect(acquired).toEqual([KEY, KEY]);
  });
});

describe('a locked subscription', () => {
  @Resolver()
  class NewsResolver {
    readonly gate = new Gate();
    readonly steps: string[] = [];

    @Subscription(() => Int, { resolve })
    @DistributedLock({ value: 'slow', keyTimeout: 60_000 })
    async *slow() {
      try {
        yield 1;
        await this.gate.pass();
        yield 2;
        this.steps.push('after the yield');
      } finally {
        this.steps.push('end');
      }
    }
  }

  it('keeps its lock, when its subscriber has left, until its async generator comes to a yield', async () => {
    const { url, get, isTaken } = await serveGraphql({ providers: [NewsResolver] }, {}, OVER_WS);
    const { gate, steps } = get(NewsResolver);
    const client = new Subscriber(url, 'subscription { slow }');
    await client.received(1);
    await eventually(() => gate.arrived === 1);
    await client.complete();
    expect(await isTaken('slow-locks')).toBe(true);
    gate.open();
    await eventually(async () => !(await isTaken('slow-locks')));
    expect(steps).toEqual(['end']);
  });

  it('of docs/http.md lets one subscriber in at a time', async () => {
    const { url, get, isTaken } = await serveGraphql({ providers: [StockResolver, StockService] }, {}, OVER_WS);
    const { changes } = get(StockService);
    const first = new Subscriber(url, 'subscription { changes }');
    await first.received(1);
    const second = new Subscriber(url, 'subscription { changes }');
    await eventually(() => second.isHeard);
    await first.complete();
    expect(await second.received(1)).toEqual([0]);
    expect([changes.most, changes.begun]).toEqual([1, ['changes-locks', 'changes-locks']]);
    await second.complete();
    await eventually(async () => !(await isTaken('changes-locks')));
  });
});
