// Two clusters: in one list of endpoints, or one after the other at one address.
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { EtcdClient } from '../../../lib/stores/etcd/etcd.client.js';
import { EtcdTable } from '../../../lib/stores/etcd/etcd.table.js';
import { rejection } from '../../support/rejection.js';
import { examined } from '../../doctor/examined.js';
import { startEtcd } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { startProxy } from '../../support/tcp-proxy.js';
import { open } from './setting.js';

afterEach(() => jest.restoreAllMocks());

const AS_IT_COMES = { endOfRequest: ({ length }: Buffer) => length, endOfReply: ({ length }: Buffer) => length, isPush: () => false };

it('endpoints of two clusters in one list: the second one is refused, the first one goes on, and the doctor names it', async () => {
  const [first, second] = await Promise.all([startEtcd(), startEtcd()]);
  const options = { endpoints: [first.url, second.url], requestTimeout: 5000 };
  jest.spyOn(Math, 'random').mockReturnValueOnce(0.1);
  const locks = open(options);
  await (await locks.acquire('order:42')).release();
  await first.kill();
  const refused = {
    name: 'StoreError',
    transient: false,
    message: expect.stringContaining(`${second.url}: it is of another cluster than`),
  };
  expect(await rejection(locks.acquire('order:42'))).toMatchObject(refused);
  await first.restart();
  await (await locks.acquire('order:42')).release();
  const report = await examined(etcdStore(options));
  expect(report.verdict).toMatchObject({ efficiency: 'no' });
  expect(report.of('role')).toMatchObject({ state: 'bad', advice: expect.stringContaining('one') });
  await Promise.all([first, second].map((cluster) => cluster.stop()));
});

it('a reply of another cluster names it before it is used, and has the count of that cluster', async () => {
  const clusters = await Promise.all([startEtcd(), startEtcd()]);
  const proxy = await startProxy({ port: clusters[0].port }, Math.random, AS_IT_COMES);
  const table = new EtcdTable(new EtcdClient({ endpoints: [`http://127.0.0.1:${proxy.port}`] }, 5000), 'test/');
  const names: (string | undefined)[] = [];
  table.onReplaced((name) => names.push(name));
  const write = (key: string) => table.exchange([{ key, expected: { version: undefined }, text: '', messages: [] }])[0]!;
  for (const key of ['a', 'b', 'c']) await write(key);
  const before = await table.count();
  expect(new Set(names).size).toBe(1);
  proxy.moveTo({ port: clusters[1].port });
  proxy.cut();
  const found = await eventually(() => write('d'));
  expect(new Set(names).size).toBe(2);
  expect(found).toMatchObject({ written: true });
  expect(String(found.revision)).toBe((found as { version: string }).version);
  expect(found.revision).toBeLessThan(before);
  await table.close();
  await proxy.close();
  await Promise.all(clusters.map((cluster) => cluster.stop()));
});
