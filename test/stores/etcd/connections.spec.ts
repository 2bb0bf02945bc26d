// The connections of a store to etcd, which a proxy counts, holds up, or leaves silent.
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import type { LockStore } from 'nestjs-distributed-lock/core';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { EtcdClient } from '../../../lib/stores/etcd/etcd.client.js';
import { rejection } from '../../support/rejection.js';
import { startEtcd, type EtcdServer } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { base64 } from './setting.js';

/** Longer than any test: what ends does not end by it. */
const TIMEOUT = 600_000;

let server: EtcdServer;
let way: Way;
beforeAll(async () => {
  server = await startEtcd();
  way = new Way(server.port);
  await way.listen();
});
beforeEach(() => way.reset());
afterAll(async () => {
  await way.close();
  await server.stop();
});

/** The way to etcd. */
class Way {
  /** Connections since the start of the test. */
  made = 0;
  /** Requests that have come while it holds them up. */
  held = 0;
  isHeldUp = false;
  private readonly open = new Set<Socket>();
  private readonly silent = new WeakSet<Socket>();
  private readonly server: Server = createServer((client) => {
    this.made++;
    const upstream = connect(this.to, '127.0.0.1');
    this.open.add(client);
    client
      .on('data', (bytes) => {
        if (this.isHeldUp) this.held++;
        else if (!this.silent.has(client)) upstream.write(bytes);
      })
      .on('error', () => undefined)
      .on('close', () => {
        this.open.delete(client);
        upstream.destroy();
      });
    upstream.on('data', (bytes) => client.write(bytes)).on('error', () => undefined);
    upstream.on('close', () => client.destroy());
  });

  constructor(private readonly to: number) {}

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get connections(): number {
    return this.open.size;
  }

  /** The open connections stay open, and carry nothing any more. */
  silence(): void {
    for (const client of this.open) this.silent.add(client);
  }

  reset(): void {
    for (const client of this.open) client.destroy();
    this.made = this.held = 0;
    this.isHeldUp = false;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => void this.server.listen(0, '127.0.0.1', resolve));
  }

  async close(): Promise<void> {
    this.reset();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

describe('a store that is closed', () => {
  const key = 'order:42';
  const acquire = (store: LockStore, owner: string) => store.mutex.acquire({ key, owner, ttl: 60_000, tokens: 1, queue: false });

  it('sends nothing any more, also nothing that waits behind a release under way (G7)', async () => {
    const store = etcdStore({ endpoints: [way.url], requestTimeout: TIMEOUT });
    expect(await acquire(store, 'me')).toMatchObject({ granted: true });
    way.isHeldUp = true;
    const { held } = way;
    const underWay = store.mutex.release({ key, owner: 'me', keepFor: 0 });
    await eventually(() => way.held > held);
    const behind = acquire(store, 'other');
    await store.close();
    const { made } = way;
    const [first, second] = await Promise.all([rejection(underWay), rejection(behind)]);
    expect(first).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
    const closed = { name: 'StoreError', transient: false, isUnsent: true, message: expect.stringContaining('the store is closed') };
    expect(second).toMatchObject(closed);
    expect(await rejection(store.mutex.release({ key, owner: 'me', keepFor: 0 }))).toMatchObject(closed);
    await eventually(() => way.connections === 0);
    expect(way.made).toBe(made);
  });

  it('opens no watch any more', async () => {
    const client = new EtcdClient({ endpoints: [way.url] }, TIMEOUT);
    client.close();
    const ended = new Promise((resolve) => client.watch(JSON.stringify({ create_request: { key: base64('x') } }), resolve, resolve));
    expect(await ended).toMatchObject({ name: 'StoreError', isUnsent: true, message: expect.stringContaining('the store is closed') });
    expect(way.made).toBe(0);
  });
});

it('idle connections are closed with one that is silent: each would make another request late (G8)', async () => {
  const client = new EtcdClient({ endpoints: [way.url] }, 2000);
  const ask = (): Promise<unknown> => client.ask('/v3/kv/range', { key: base64('x') });
  await eventually(async () => {
    await Promise.all(Array.from({ length: 10 }, ask));
    expect(way.connections).toBeGreaterThan(1);
  });
  way.silence();
  expect(await rejection(ask())).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
  await eventually(() => way.connections === 0);
  await eventually(ask);
  client.close();
});
