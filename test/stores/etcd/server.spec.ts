// etcd as it is set up wrongly, or by itself in trouble. One member, which is changed from test to test.
import { LockConfigError, StoreError } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { rejection } from '../../support/rejection.js';
import { examined } from '../../doctor/examined.js';
import { startEtcd, type EtcdServer } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { ask, base64, open } from './setting.js';

let server: EtcdServer;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.stop());

const acquired = (options: Parameters<typeof open>[0]): Promise<unknown> => open(options).acquire('order:42', { waitTimeout: 1000 });

describe('the options', () => {
  it.each([
    [{ endpoints: [] }, 'an array of URLs'],
    [{ endpoints: ['etcd-1:2379'] }, 'an endpoint must be a URL such as http://etcd-1:2379'],
    [{ endpoints: ['http://shop:secret@etcd-1:2379'] }, 'A user goes into "auth"'],
    [{ endpoints: ['https://etcd-1', 'https://etcd-2/etcd'] }, 'an endpoint must be a URL such as'],
    [{ endpoints: ['https://etcd-1', 'https://etcd-2/?secret'] }, 'an endpoint must be a URL such as'],
    [{ endpoints: ['https://etcd-1', 'https://etcd-2/#secret'] }, 'an endpoint must be a URL such as'],
    [{ endpoints: ['http://etcd-1:2379'], tls: {} }, '"tls" is for https:// endpoints'],
    [{ endpoints: ['http://etcd-1:2379'], auth: { username: 'shop' } }, '"password" must be a string'],
    [{ endpoints: ['http://etcd-1:2379'], auth: { username: 'shop', password: 271828 } }, '"password" must be a string, not this number'],
    [{ endpoints: ['http://etcd-1:2379'], prefix: '' }, '"prefix"'],
  ])('%j: %s', (options, message) => {
    expect(() => etcdStore(options as never)).toThrow(LockConfigError);
    expect(() => etcdStore(options as never)).toThrow(message);
    expect(() => etcdStore(options as never)).not.toThrow('secret');
  });
});

describe('an endpoint', () => {
  it('that does not listen is passed over, so that the first request goes to the next one', async () => {
    const gone = [1, 2, 3, 4, 5].map((port) => `http://127.0.0.1:${port}`);
    // Each store begins with any of them.
    for (let tries = 0; tries < 6; tries++) {
      const store = etcdStore({ endpoints: [...gone, server.url], requestTimeout: 5000 });
      expect(await store.mutex.check({ key: 'order:42', owner: 'me' })).toMatchObject({ state: 'free' });
      await store.close();
    }
  });

  it('that is the only one and does not listen is an outage: nothing was sent', async () => {
    const error = await rejection(etcdStore({ endpoints: ['http://127.0.0.1:1'] }).mutex.check({ key: 'order:42', owner: 'me' }));
    expect(error).toMatchObject({ name: 'StoreError', transient: true, isUnsent: true });
  });

  it('without the gateway is refused with what to change', async () => {
    const old = createServer((_request, response) => response.writeHead(404).end('404 page not found'));
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', resolve));
    const endpoints = [`http://127.0.0.1:${(old.address() as AddressInfo).port}`];
    expect(await rejection(acquired({ endpoints }))).toMatchObject({
      isRefusal: true,
      message: expect.stringContaining('etcd 3.4 or later is needed'),
    });
    old.closeAllConnections();
    await new Promise((resolve) => old.close(resolve));
  });
});

it('the doctor says of one member that one disk has all locks, and nothing else', async () => {
  const report = await examined(etcdStore({ endpoints: [server.url] }));
  expect(report.notOk).toEqual(['replication warn']);
  expect(report.of('version').seen).toMatch(/^etcd 3\.\d+\.\d+$/);
  expect(report.of('replication').advice).toBe('Run three or five members.');
});

it('a lost reply changes nothing: the request is repeated, and there is one grant', async () => {
  const proxy = await losing(server.url);
  const locks = open({ endpoints: [proxy.url], requestTimeout: 2000 });
  await (await locks.acquire('order:1')).release();
  proxy.loses = 1;
  const lease = await locks.acquire('order:1');
  expect(proxy.loses).toBe(0);
  expect(await open({ endpoints: [server.url] }).tryAcquire('order:1')).toBeNull();
  proxy.loses = 1;
  expect(await lease.release()).toBe(true);
  await (await open({ endpoints: [server.url] }).acquire('order:1')).release();
  await proxy.close();
});

it('a waiter is woken after the watch was compacted away, and after the server was started again', async () => {
  const [holder, waiter] = [open({ endpoints: [server.url] }), open({ endpoints: [server.url] })];
  const handOver = async (): Promise<void> => {
    const lease = await holder.acquire('hand-over', { keyTimeout: 60_000 });
    const waiting = waiter.acquire('hand-over', { waitTimeout: 60_000, retryInterval: 30_000 });
    await eventually(async () => (await holder.inspect('hand-over')).waiters.length === 1);
    await lease.release();
    await (await waiting).release();
  };
  await handOver();
  const { header } = await ask<{ header: { revision: string } }>(server.url, '/v3/kv/put', { key: base64('x'), value: '' });
  await ask(server.url, '/v3/kv/compaction', { revision: header.revision, physical: true });
  await handOver();
  await server.restart();
  await eventually(handOver);
});

it('a row that is no lock is an error that names the key', async () => {
  await ask(server.url, '/v3/kv/put', {
    key: base64('nestjs-distributed-lock/r/odd'),
    value: base64('{"record":{"kind":"mutex"},"fence":1}'),
  });
  const error = await rejection(open({ endpoints: [server.url] }).acquire('odd', { waitTimeout: 1000 }));
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ transient: false, message: expect.stringContaining('The row of "odd" is not valid') });
});

/** A server before etcd. It loses as many replies as it is told to. */
async function losing(target: string): Promise<{ url: string; loses: number; close(): Promise<unknown> }> {
  const proxy: Server = createServer((request, response) => {
    void (async () => {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const reply = await fetch(target + request.url!, { method: 'POST', body: Buffer.concat(parts) });
      if (request.url === '/v3/watch') return response.destroy();
      const text = await reply.text();
      if (state.loses > 0 && text.includes('"responses"') && Buffer.concat(parts).includes('request_put')) {
        state.loses--;
        return response.destroy();
      }
      return response.writeHead(reply.status).end(text);
    })();
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const state = {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    loses: 0,
    async close() {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
  return state;
}
