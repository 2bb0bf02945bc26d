import { Controller, Sse } from '@nestjs/common';
import type { Server } from 'node:http';
import { Observable, of } from 'rxjs';
import type { DistributedLockOptions } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { ADAPTERS, serve, type Adapter } from './http-app.js';
import { lockAmong, LONG, place, type Order } from './place.js';
import { SseClient } from './sse-client.js';
import { Feed, type Message } from './sse-feed.js';

const KEY = 'feed-locks';

async function serveFeed(adapter: Adapter, order: Order, options: DistributedLockOptions = {}) {
  const lock = { value: 'feed', ...LONG, ...options };
  @Controller()
  class FeedController {
    readonly feed = new Feed();

    @lockAmong(order, lock, Sse('feed'))
    stream(): Observable<Message> {
      return this.feed.stream();
    }
  }
  const served = await serve(adapter, { controllers: [FeedController] });
  const left: unknown[] = [];
  const server = served.app.getHttpServer() as Server;
  server.on('request', (request, response) => response.on('close', () => left.push(request.url)));
  const connect = () => new SseClient(`${served.url}/feed`);
  const isFree = () => eventually(async () => !(await served.isTaken(KEY)));
  return { ...served, feed: served.get(FeedController).feed, connect, isFree, left };
}

place('HTTP', '@Sse: locked while the client is connected, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('lets clients in one after the other (%s)', async (adapter) => {
    const { connect, feed, acquired, isFree } = await serveFeed(adapter, order);
    const first = connect();
    await first.data(1);
    const second = connect();
    await eventually(() => second.status === 200); // the answer has begun, its stream not yet
    feed.begun[0]?.next({ data: 'for the first' });
    await first.data(2);
    expect([feed.begun.length, second.events, first.status]).toEqual([1, [], 200]);
    first.leave();
    expect(await second.data(1)).toEqual([KEY]);
    expect([feed.most, acquired, feed.begun[0]?.closed]).toEqual([1, [KEY, KEY], true]);
    second.leave();
    await isFree();
  });

  it.each(ADAPTERS)('gives its lock back when the stream fails, of which the client hears (%s)', async (adapter) => {
    const { connect, feed, acquired, isFree } = await serveFeed(adapter, order);
    const client = connect();
    expect(await client.data(1)).toEqual([KEY]);
    feed.begun[0]?.error(new Error('no more news'));
    await eventually(() => client.events.at(-1)?.type === 'error');
    await isFree();
    expect([acquired, feed.most]).toEqual([[KEY], 1]);
  });

  it.each(ADAPTERS)('is not begun for a client that has left while it waited (%s)', async (adapter) => {
    const { connect, feed, acquired, isFree, left } = await serveFeed(adapter, order);
    const first = connect();
    await first.data(1);
    const second = connect();
    await eventually(() => second.status === 200);
    second.leave();
    await eventually(() => left.length === 1); // the server has noticed
    const third = connect();
    await eventually(() => third.status === 200);
    first.leave();
    expect(await third.data(1)).toEqual([KEY]);
    third.leave();
    await isFree();
    expect([feed.begun.length, acquired]).toEqual([2, [KEY, KEY]]);
  });

  it.each(ADAPTERS)('tells a client whose patience is over, by an error or by what onTimeout gives (%s)', async (adapter) => {
    const one = await serveFeed(adapter, order, { waitTimeout: 50 });
    await one.connect().data(1);
    const refused = one.connect();
    await eventually(() => refused.hasEnded);
    expect(refused.events).toMatchObject([{ type: 'error', data: expect.not.stringContaining('feed') }]);

    const other = await serveFeed(adapter, order, { waitTimeout: 0, onTimeout: () => of({ type: 'busy', data: 'later' }) });
    await other.connect().data(1);
    const answered = other.connect();
    await eventually(() => answered.hasEnded);
    expect(answered.events).toEqual([{ type: 'busy', data: 'later' }]);
    expect([one.feed.begun.length, other.feed.begun.length]).toEqual([1, 1]);
  });
});
