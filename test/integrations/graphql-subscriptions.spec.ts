import { Args, Int, Query, Resolver, Subscription } from '@nestjs/graphql';
import { currentLease, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { serveGraphql } from './graphql-app.js';
import { Channel } from './graphql-channel.js';
import { Subscriber } from './graphql-subscriber.js';
import { lockAmong, place, type Order } from './place.js';

const KEY = 'news-locks';

async function serveNews(order: Order, options: DistributedLockOptions = {}) {
  const lock = { value: 'news', keyTimeout: 60_000, waitTimeout: 20_000, ...options };

  @Resolver()
  class NewsResolver {
    readonly channel = new Channel<number>();
    readonly endings: (string | undefined)[] = [];
    setUp: string | undefined;

    @lockAmong(order, { ...lock, returns: 'iterable' }, Subscription(() => Int, { resolve: (value: number) => value }))
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
        for (let count = 1; count <= to; count++) yield `${count} ${currentLease()?.key}`;
      } finally {
        this.endings.push(currentLease()?.key);
      }
    }

    @lockAmong(order, lock, Subscription(() => Int, { resolve: (value: number) => value }))
    async setUpOnly() {
      this.setUp = currentLease()?.key;
      return this.channel.iterate(0);
    }

    // A schema needs a query.
    @Query(() => Int)
    async readers() {
      return this.channel.most;
    }
  }
  const served = await serveGraphql({ providers: [NewsResolver] }, {}, { subscriptions: { 'graphql-ws': true } });
  const subscribe = (field = 'news') => new Subscriber(served.url, `subscription { ${field} }`);
  const isFree = () => eventually(async () => !(await served.isTaken(KEY)));
  return { ...served, resolver: served.get(NewsResolver), channel: served.get(NewsResolver).channel, subscribe, isFree };
}

place('GraphQL', '@Subscription that returns an async iterable: locked while the client is subscribed', (order) => {
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

  it('lets subscribers in one after the other', async () => {
    const { subscribe, channel, acquired } = await serveNews(order);
    const first = subscribe();
    await first.received(1);
    const second = subscribe();
    await eventually(() => second.isHeard);
    channel.publish(1);
    await first.received(2);
    expect([second.values, channel.begun]).toEqual([[], [KEY]]);
    await first.complete();
    expect(await second.received(1)).toEqual([0]);
    expect([channel.most, acquired]).toEqual([1, [KEY, KEY]]);
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

  it('tells a subscriber whose patience is over, by an error or by the one value that onTimeout gives', async () => {
    const one = await serveNews(order, { waitTimeout: 0 });
    await one.subscribe().received(1);
    const refused = one.subscribe();
    await eventually(() => refused.errors.length === 1);
    expect([refused.values, one.channel.begun]).toEqual([[], [KEY]]);

    const other = await serveNews(order, { waitTimeout: 0, onTimeout: () => -1 });
    await other.subscribe().received(1);
    const answered = other.subscribe();
    await eventually(() => answered.isComplete);
    expect([answered.values, answered.errors, other.channel.begun]).toEqual([[-1], [], [KEY]]);
  });
});

place('GraphQL', '@Subscription on an async method: only its setting up is locked', (order) => {
  it('gives its lock back when the iterable is there', async () => {
    const { subscribe, resolver, channel, acquired, isTaken } = await serveNews(order);
    const clients = [subscribe('setUpOnly'), subscribe('setUpOnly')];
    await Promise.all(clients.map((client) => client.received(1)));
    expect([resolver.setUp, channel.most, await isTaken(KEY)]).toEqual([KEY, 2, false]);
    expect(acquired).toEqual([KEY, KEY]);
  });
});
