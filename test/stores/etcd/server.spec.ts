// etcd as it is set up wrongly, or by itself in trouble. One member, which is changed from test to test.
import { LockConfigError } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { examined } from '../../doctor/examined.js';
import { startEtcd, type EtcdServer } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { ask, base64, open } from './setting.js';

let server: EtcdServer;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.stop());

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
])('the options %j: %s', (options, message) => {
  expect(() => etcdStore(options as never)).toThrow(LockConfigError);
  expect(() => etcdStore(options as never)).toThrow(message);
  expect(() => etcdStore(options as never)).not.toThrow('secret');
});

it('an endpoint that does not listen is passed over, so that the first request goes to the next one', async () => {
  const gone = [1, 2, 3, 4, 5].map((port) => `http://127.0.0.1:${port}`);
  // Each store begins with any of them.
  for (let tries = 0; tries < 6; tries++) {
    const store = etcdStore({ endpoints: [...gone, server.url], requestTimeout: 5000 });
    expect(await store.mutex.check({ key: 'order:42', owner: 'me' })).toMatchObject({ state: 'free' });
    await store.close();
  }
});

it('the doctor says of one member that one disk has all locks, and nothing else', async () => {
  const report = await examined(etcdStore({ endpoints: [server.url] }));
  expect(report.notOk).toEqual(['replication warn']);
  expect(report.of('version').seen).toMatch(/^etcd 3\.\d+\.\d+$/);
  expect(report.of('replication').advice).toBe('Run three or five members.');
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
