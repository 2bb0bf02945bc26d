// Streams over HTTP, and the snippets of docs/http.md: how long a lock is held, and what cannot be a key.
import { Controller, Get, Sse, StreamableFile } from '@nestjs/common';
import { Observable } from 'rxjs';
import type { Server } from 'node:http';
import { PassThrough } from 'node:stream';
import { DistributedLock, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { ADAPTERS, serve, type Adapter } from './http-app.js';
import { OrderModule, PriceController, ReportController } from './http-docs.js';
import { key, lockAmong, LONG, aboveAndBelow, type Order } from './ways.js';
import { Feed, SseClient, type Message } from './sse-client.js';

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

aboveAndBelow('HTTP', '@Sse: locked while the client is connected, on Express and Fastify', (order) => {
  it.each(ADAPTERS)('lets clients in one after the other, and none that has left while it waited (%s)', async (adapter) => {
    const { connect, feed, acquired, isFree, left } = await serveFeed(adapter, order);
    const first = connect();
    await first.data(1);
    const [second, third] = [connect(), connect()];
    await eventually(() => second.status === 200 && third.status === 200); // the answers have begun, their streams not yet
    second.leave();
    await eventually(() => left.length === 1); // the server has noticed
    feed.begun[0]?.next({ data: 'for the first' });
    await first.data(2);
    expect([feed.begun.length, third.events]).toEqual([1, []]);
    first.leave();
    expect(await third.data(1)).toEqual([KEY]);
    third.leave();
    await isFree();
    expect([feed.most, feed.begun.length, acquired, feed.begun[0]?.closed]).toEqual([1, 2, [KEY, KEY], true]);
  });

  it.each(ADAPTERS)('releases its lock when the stream fails, which the client is sent (%s)', async (adapter) => {
    const { connect, feed, isFree } = await serveFeed(adapter, order);
    const client = connect();
    await client.data(1);
    feed.begun[0]?.error(new Error('no more news'));
    await eventually(() => client.events.at(-1)?.type === 'error');
    await isFree();
  });

  it.each(ADAPTERS)('sends an error without the key to a client whose wait timeout is over (%s)', async (adapter) => {
    const { connect, feed } = await serveFeed(adapter, order, { waitTimeout: 50 });
    await connect().data(1);
    const refused = connect();
    await eventually(() => refused.hasEnded);
    expect(refused.events).toMatchObject([{ type: 'error', data: expect.not.stringContaining('feed') }]);
    expect(feed.begun).toHaveLength(1);
  });
});

@Controller()
class PitfallController {
  readonly gate = new Gate();
  readonly file = new PassThrough();
  readonly ran: string[] = [];

  @Get('file')
  @DistributedLock({ value: 'file', ...LONG })
  async download() {
    this.ran.push(key());
    return new StreamableFile(this.file);
  }

  @Get('slow')
  @DistributedLock({ value: 'slow', ...LONG })
  async slow() {
    await this.gate.pass();
    this.ran.push(key());
  }
}

describe.each(ADAPTERS)('a locked handler (%s)', (adapter) => {
  const open = async () => {
    const served = await serve(adapter, { controllers: [PitfallController] });
    const { gate, file, ran } = served.get(PitfallController);
    return { ...served, gate, file, ran };
  };

  it('has released its lock while the file that it returned is still being sent', async () => {
    const { url, ran, file, isTaken } = await open();
    file.write('first ');
    const response = await fetch(`${url}/file`);
    expect([response.status, ran, await isTaken('file-locks')]).toEqual([200, ['file-locks'], false]);
    file.end('last');
    expect(await response.text()).toBe('first last');
  });

  it('runs on under its lock when the client has left, and runs also for one that left while it waited', async () => {
    const { url, gate, ran, isTaken, waiting } = await open();
    const clients = new AbortController();
    const ask = () => fetch(`${url}/slow`, { signal: clients.signal }).catch((error: Error) => error.name);
    const first = ask();
    await eventually(() => gate.arrived === 1);
    const second = ask();
    await eventually(() => waiting.length === 1);
    clients.abort();
    expect(await Promise.all([first, second])).toEqual(['AbortError', 'AbortError']);
    expect([ran, await isTaken('slow-locks')]).toEqual([[], true]);
    gate.open();
    await eventually(() => expect(ran).toEqual(['slow-locks', 'slow-locks']));
    await eventually(async () => !(await isTaken('slow-locks')));
  });
});

describe.each(ADAPTERS)('docs/http.md (%s)', (adapter) => {
  it('locks orders by the number that the pipe made, and answers 423 where one stays taken', async () => {
    const { post, locks, acquired } = await serve(adapter, { imports: [OrderModule] });
    expect(await post('orders/042/items', { sku: 'apple' })).toMatchObject({ status: 201, body: { id: 42, sku: 'apple' } });
    expect(acquired).toEqual(['orders-42-locks']);
    await using _lease = await locks.acquire('orders-42-locks', { keyTimeout: 60_000 });
    expect(await post('orders/42/items', { sku: 'pear' })).toMatchObject({ status: 423, body: { code: 'LOCK_TIMEOUT' } });
  });

  it('builds a report under the lock', async () => {
    const { ask, acquired } = await serve(adapter, { controllers: [ReportController] });
    expect((await ask('reports/yearly')).text).toBe('built under report-locks');
    expect(acquired).toEqual(['report-locks']);
  });

  it('feeds one client, and sends another that it is busy', async () => {
    const { url, isTaken } = await serve(adapter, { controllers: [PriceController] });
    const client = new SseClient(`${url}/prices/feed`);
    expect(await client.data(1)).toEqual(['price 0']);
    const other = new SseClient(`${url}/prices/feed`);
    await eventually(() => other.hasEnded);
    expect(other.events).toEqual([{ type: 'busy', data: 'try later' }]);
    expect(await isTaken(KEY)).toBe(true);
    client.leave();
    await eventually(async () => !(await isTaken(KEY)));
  });
});
