// What docs/graphql.md warns of.
import { APP_FILTER } from '@nestjs/core';
import { Int, Query, Resolver, Subscription } from '@nestjs/graphql';
import { DistributedLock, LockExceptionFilter } from 'nestjs-distributed-lock';
import { Gate } from '../nest/gate.js';
import { eventually } from '../support/eventually.js';
import { serveGraphql } from './graphql-app.js';
import { Channel } from './graphql-channel.js';
import { Subscriber } from './graphql-subscriber.js';

const resolve = (value: number) => value;

@Resolver()
class NewsResolver {
  readonly gate = new Gate();
  readonly channel = new Channel<number>();
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

  @Subscription(() => Int, { resolve })
  @DistributedLock({ value: 'alone', returns: 'iterable', keyTimeout: 60_000, waitTimeout: 0 })
  alone() {
    return this.channel.iterate(0);
  }

  // A schema needs a query.
  @Query(() => Int)
  async readers() {
    return this.channel.most;
  }
}

async function serve() {
  const providers = [NewsResolver, { provide: APP_FILTER, useClass: LockExceptionFilter }];
  const served = await serveGraphql({ providers }, {}, { subscriptions: { 'graphql-ws': true } });
  return { ...served, ...served.get(NewsResolver), subscribe: (field: string) => new Subscriber(served.url, `subscription { ${field} }`) };
}

describe('a locked subscription', () => {
  it('keeps its lock, when its subscriber has left, until its async generator comes to a yield', async () => {
    const { subscribe, gate, steps, isTaken } = await serve();
    const client = subscribe('slow');
    await client.received(1);
    await eventually(() => gate.arrived === 1);
    await client.complete();
    expect(await isTaken('slow-locks')).toBe(true);
    gate.open();
    await eventually(async () => !(await isTaken('slow-locks')));
    expect(steps).toEqual(['end']);
  });

  it('tells of a time-out past all filters, with the name of its key', async () => {
    const { subscribe, channel } = await serve();
    await subscribe('alone').received(1);
    const refused = subscribe('alone');
    await eventually(() => refused.errors.length === 1);
    expect(refused.errors).toMatchObject([{ message: expect.stringContaining('alone-locks') }]);
    expect(channel.begun).toEqual(['alone-locks']);
  });
});
