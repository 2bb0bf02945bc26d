// The snippets of docs/http.md do what it says, and so does what it warns of: how long a lock is held, and what cannot be a key.
import { Controller, Get, Param, Res, Sse, StreamableFile } from '@nestjs/common';
import { Observable } from 'rxjs';
import type { Server } from 'node:http';
import { PassThrough } from 'node:stream';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { eventually } from '../support/eventually.js';
import { ADAPTERS, serve, type Adapter } from './http-app.js';
import { OrderModule, PriceController, ReportController } from './http-docs.js';
import { key, LONG } from './place.js';
import { SseClient } from './sse-client.js';
import { Feed, type Message } from './sse-feed.js';

@Controller()
class PitfallController {
  readonly gate = new Gate();
  readonly feed = new Feed();
  readonly file = new PassThrough();
  readonly ran: string[] = [];

  @Get('file')
  @DistributedLock({ value: 'file', ...LONG })
  async download() {
    this.ran.push(key());
    return new StreamableFile(this.file);
  }

  @Sse('feed')
  @DistributedLock({ value: 'feed', ...LONG })
  async stream(): Promise<Observable<Message>> {
    this.ran.push(key());
    return this.feed.stream();
  }

  @Get('slow')
  @DistributedLock({ value: 'slow', ...LONG })
  async slow() {
    await this.gate.pass();
    this.ran.push(key());
  }

  @Get('reply/:id')
  @DistributedLock({ value: 'reply', paramLock: true, ...LONG })
  async reply(@Param('id') id: string, @Res({ passthrough: true }) _reply: object) {
    this.ran.push(id);
    return { key: key() };
  }

  @Get('id/:id')
  @DistributedLock({ value: 'id', paramLock: ['0'], ...LONG })
  async byId(@Param('id') id: string, @Res({ passthrough: true }) _reply: object) {
    return { id, key: key() };
  }
}

async function serveIt(adapter: Adapter) {
  const served = await serve(adapter, { controllers: [PitfallController] });
  const { gate, feed, file, ran } = served.get(PitfallController);
  return { ...served, gate, feed, file, ran };
}

describe.each(ADAPTERS)('a locked handler (%s)', (adapter) => {
  it('has given its lock back while the file that it returned is still being sent', async () => {
    const { url, ran, file, isTaken } = await serveIt(adapter);
    file.write('first ');
    const response = await fetch(`${url}/file`);
    expect([response.status, ran, await isTaken('file-locks')]).toEqual([200, ['file-locks'], false]);
    file.end('last');
    expect(await response.text()).toBe('first last');
  });

  it('has given its lock back while the Observable is running that its promise resolved to', async () => {
    const { url, ran, acquired, isTaken } = await serveIt(adapter);
    const clients = [new SseClient(`${url}/feed`), new SseClient(`${url}/feed`)];
    for (const client of clients) expect(await client.data(1)).toEqual(['unlocked']);
    expect([ran, await isTaken('feed-locks')]).toEqual([['feed-locks', 'feed-locks'], false]);
    expect(acquired).toEqual(['feed-locks', 'feed-locks']);
    for (const client of clients) client.leave();
  });

  it('runs on under its lock when the client has left, and runs yet for one that left while it waited', async () => {
    const { app, url, gate, ran, isTaken } = await serveIt(adapter);
    let requests = 0;
    (app.getHttpServer() as Server).on('request', () => requests++);
    const clients = new AbortController();
    const ask = () => fetch(`${url}/slow`, { signal: clients.signal }).catch((error: Error) => error.name);
    const first = ask();
    await eventually(() => gate.arrived === 1);
    const second = ask();
    await eventually(() => requests === 2);
    clients.abort();
    expect(await Promise.all([first, second])).toEqual(['AbortError', 'AbortError']);
    expect([ran, await isTaken('slow-locks')]).toEqual([[], true]);
    gate.open();
    await eventually(() => ran.length === 2);
    expect(ran).toEqual(['slow-locks', 'slow-locks']);
    await eventually(async () => !(await isTaken('slow-locks')));
  });

  it('cannot be locked by a response, but by what is beside it', async () => {
    const { ask, ran, acquired } = await serveIt(adapter);
    expect((await ask('reply/1')).status).toBe(500);
    expect([ran, acquired]).toEqual([[], []]);
    const [one, two] = [await ask('id/1'), await ask('id/2')];
    expect(one.body).toEqual({ id: '1', key: acquired[0] });
    expect(two.body).toEqual({ id: '2', key: acquired[1] });
    expect(new Set(acquired).size).toBe(2);
  });
});

describe.each(ADAPTERS)('docs/http.md (%s)', (adapter) => {
  it('locks orders by the number that the pipe made, and answers 423 where one stays taken', async () => {
    const { post, locks, acquired } = await serve(adapter, { imports: [OrderModule] });
    expect(await post('orders/042/items', { sku: 'apple' })).toMatchObject({ status: 201, body: { id: 42, sku: 'apple' } });
    expect(acquired).toEqual(['orders-42-locks']);
    const lease = await locks.acquire('orders-42-locks', { keyTimeout: 60_000 });
    expect(await post('orders/42/items', { sku: 'pear' })).toMatchObject({ status: 423, body: { code: 'LOCK_TIMEOUT' } });
    await lease.release();
  });

  it('builds a report under the lock', async () => {
    const { ask, acquired } = await serve(adapter, { controllers: [ReportController] });
    expect((await ask('reports/yearly')).text).toBe('built under report-locks');
    expect(acquired).toEqual(['report-locks']);
  });

  it('feeds one client, and tells another that it is busy', async () => {
    const { url, isTaken } = await serve(adapter, { controllers: [PriceController] });
    const client = new SseClient(`${url}/prices/feed`);
    expect(await client.data(1)).toEqual(['price 0']);
    const other = new SseClient(`${url}/prices/feed`);
    await eventually(() => other.hasEnded);
    expect(other.events).toEqual([{ type: 'busy', data: 'try later' }]);
    expect(await isTaken('feed-locks')).toBe(true);
    client.leave();
    await eventually(async () => !(await isTaken('feed-locks')));
  });
});
