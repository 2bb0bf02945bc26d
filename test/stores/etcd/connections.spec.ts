// The connections of a store to etcd, which a proxy counts, holds up, or leaves silent.
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import type { LockStore } from 'nestjs-distributed-lock/core';
import { EtcdClient } from '../../../lib/stores/etcd/etcd.client.js';
import { rejection } from '../../support/rejection.js';
import { startEtcd, type EtcdServer } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { AS_IT_COMES } from '../../support/tcp-proxy-framing.js';
import { base64, TIMEOUT } from './setting.js';

let server: EtcdServer;
let proxy: TcpProxy;
let url: string;
beforeAll(async () => {
  server = await startEtcd();
  proxy = await startProxy({ port: server.port }, Math.random, AS_IT_COMES);
  url = `http://127.0.0.1:${proxy.port}`;
});
afterEach(() => proxy.heal());
afterAll(async () => {
  await proxy.close();
  await server.stop();
});

describe('a store that is closed', () => {
  const key = 'order:42';
  const acquire = (store: LockStore, owner: string) => store.mutex.acquire({ key, owner, ttl: 60_000, tokens: 1, queue: false });

  it('sends nothing any more, also nothing that waits behind a release under way (G7)', async () => {
    const store = etcdStore({ endpoints: [url], requestTimeout: TIMEOUT });
    expect(await acquire(store, 'me')).toMatchObject({ granted: true });
    proxy.dropRequests();
    const underWay = store.mutex.release({ key, owner: 'me', keepFor: 0 });
    await eventually(() => proxy.lost.requests > 0);
    const behind = acquire(store, 'other');
    await store.close();
    const { made } = proxy;
    const [first, second] = await Promise.all([rejection(underWay), rejection(behind)]);
    expect(first).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
    const closed = { name: 'StoreError', transient: false, isUnsent: true, message: expect.stringContaining('the store is closed') };
    expect(second).toMatchObject(closed);
    expect(await rejection(store.mutex.release({ key, owner: 'me', keepFor: 0 }))).toMatchObject(closed);
    await eventually(() => proxy.connections === 0);
    expect(proxy.made).toBe(made);
  });

  it('opens no watch any more', async () => {
    const { made } = proxy;
    const client = new EtcdClient({ endpoints: [url] }, TIMEOUT);
    client.close();
    const ended = new Promise((resolve) => client.watch(JSON.stringify({ create_request: { key: base64('x') } }), resolve, resolve));
    expect(await ended).toMatchObject({ name: 'StoreError', isUnsent: true, message: expect.stringContaining('the store is closed') });
    expect(proxy.made).toBe(made);
  });
});

it('idle connections are closed with one that is silent: each would make another request late (G8)', async () => {
  const client = new EtcdClient({ endpoints: [url] }, 2000);
  const ask = (): Promise<unknown> => client.ask('/v3/kv/range', { key: base64('x') });
  await eventually(async () => {
    await Promise.all(Array.from({ length: 10 }, ask));
    expect(proxy.connections).toBeGreaterThan(1);
  });
  proxy.silence();
  expect(await rejection(ask())).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
  await eventually(() => proxy.connections === 0);
  await eventually(ask);
  client.close();
});
