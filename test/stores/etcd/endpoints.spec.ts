// A list of endpoints of which one is not as the others. A process begins with any of them.
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EtcdClient } from '../../../lib/stores/etcd/etcd.client.js';
import { rejection } from '../../support/rejection.js';
import { examined } from '../../doctor/examined.js';
import { type EtcdServer, startEtcd, startLearner } from '../../support/etcd-server.js';
import { eventually } from '../../support/eventually.js';
import { open, TIMEOUT } from './setting.js';

let server: EtcdServer;
beforeAll(async () => {
  server = await startEtcd();
});
afterAll(() => server.stop());

const closers: (() => Promise<void>)[] = [];
afterEach(() => Promise.all(closers.splice(0).map((close) => close())));
afterEach(() => jest.restoreAllMocks());

/** The next process begins with this endpoint of so many. */
function beginWith(index: number, endpoints: number): void {
  jest.spyOn(Math, 'random').mockReturnValueOnce((index + 0.5) / endpoints);
}

/** Stands before etcd, and answers in its place what is said here. `asked`: what it was asked. */
async function frontOf(says: (path: string) => readonly [status: number, text: string] | undefined) {
  const asked: string[] = [];
  const front: Server = createServer((request, response) => {
    void (async () => {
      const body = Buffer.concat((await request.toArray()) as Buffer[]);
      const path = request.url!;
      asked.push(path);
      const said = says(path);
      if (said) return response.writeHead(said[0]).end(said[1]);
      const reply = await fetch(server.url + path, { method: 'POST', body });
      return response.writeHead(reply.status).end(await reply.text());
    })();
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  closers.push(async () => {
    front.closeAllConnections();
    await new Promise((resolve) => front.close(resolve));
  });
  return { url: `http://127.0.0.1:${(front.address() as AddressInfo).port}`, asked };
}

const refusal = (message: string, code: number): string => JSON.stringify({ error: message, message, code });
const ODD: Record<string, (path: string) => readonly [status: number, text: string] | undefined> = {
  'a learner of etcd 3.6': (path) =>
    path === '/v3/maintenance/status' ? undefined : [400, refusal('etcdserver: rpc not supported for learner', 9)],
  'a member without the gateway': () => [404, '404 page not found\n'],
  'a member without the methods': (path) => (path === '/v3/maintenance/status' ? undefined : [501, refusal('unknown service', 12)]),
  'a member that speaks HTTPS only': () => [400, 'Client sent an HTTP request to an HTTPS server.\n'],
};

describe.each(Object.entries(ODD))('%s', (_name, says) => {
  it('is passed over: what it has refused is sent to the next endpoint at once', async () => {
    const odd = await Promise.all([1, 2, 3].map(() => frontOf(says)));
    for (let first = 0; first < 4; first++) {
      beginWith(first, 4);
      const store = etcdStore({ endpoints: [...odd.map(({ url }) => url), server.url], requestTimeout: TIMEOUT });
      expect(await store.mutex.check({ key: 'order:42', owner: 'me' })).toMatchObject({ state: 'free' });
      await store.close();
    }
  });

  it('is named where there is no other', async () => {
    const { url } = await frontOf(says);
    const store = etcdStore({ endpoints: [url], requestTimeout: TIMEOUT });
    const error = await rejection(store.mutex.check({ key: 'order:42', owner: 'me' }));
    expect(error).toMatchObject({
      name: 'StoreError',
      isRefusal: true,
      isUnsent: true,
      message: expect.stringContaining(`etcd: ${url}: `),
    });
    await store.close();
  });
});

it('an endpoint that has not taken a request is an outage as long as another one may be back', async () => {
  const { url } = await frontOf(ODD['a member without the gateway']!);
  for (const first of [0, 1]) {
    beginWith(first, 2);
    const client = new EtcdClient({ endpoints: [url, 'http://127.0.0.1:1'] }, TIMEOUT);
    const error = await rejection(client.ask('/v3/kv/range', {}));
    expect(error).toMatchObject({ transient: true, isUnsent: true, message: expect.stringContaining('etcd: http://127.0.0.1:1: ') });
    client.close();
  }
});

it.each([
  ['a refusal of the whole cluster', 403, refusal('etcdserver: permission denied', 7), { transient: false, isRefusal: true }],
  ['an answer that leaves open what was done', 503, refusal('etcdserver: request timed out', 14), { transient: true, isUnsent: false }],
  ['a page', 502, '<html>', { transient: true, isUnsent: false }],
])('%s is not asked for again at another endpoint, where the next request goes', async (_what, status, text, expected) => {
  const both = await Promise.all([1, 2].map(() => frontOf(() => [status, text])));
  const client = new EtcdClient({ endpoints: both.map(({ url }) => url) }, TIMEOUT);
  const asked = (): number[] => both.map((front) => front.asked.length).sort();
  expect(await rejection(client.ask('/v3/kv/txn', {}))).toMatchObject(expected);
  expect(asked()).toEqual([0, 1]);
  expect(await rejection(client.ask('/v3/kv/txn', {}))).toMatchObject(expected);
  expect(asked()).toEqual([1, 1]);
  client.close();
});

describe.each([
  ['another cluster is refused each time', ['a 1', 'b 2 refused', 'a 1', 'b 2 refused']],
  ['a cluster that was restored, so that its id is another one, is used', ['a 1', 'b 1', 'a 2', 'b 2', 'a 2']],
  ['a member of before a restore is refused, until it is restored, too', ['a 1', 'b 1', 'a 2', 'b 1 refused', 'a 2', 'b 2']],
  ['a member is refused until one that was used is restored, too', ['a 1', 'b 2 refused', 'a 2', 'b 2']],
])('%s', (_title, replies) => {
  it(`in ${replies.join(', ')}`, async () => {
    let [name, cluster] = ['', ''];
    const reply = (): string => JSON.stringify({ header: { cluster_id: cluster, revision: '7' } });
    const both = await Promise.all(['a', 'b'].map((each) => frontOf(() => (each === name ? [200, reply()] : [404, '']))));
    const client = new EtcdClient({ endpoints: both.map(({ url }) => url) }, TIMEOUT);
    const heard: string[] = [];
    client.onReply = (each) => heard.push(each);
    for (const each of replies) {
      [name, cluster] = each.split(' ') as [string, string];
      const asked = client.ask('/v3/kv/range', {});
      const message = expect.stringMatching(/^etcd: .* is of another cluster than .*: give the members of one only\./);
      if (each.endsWith('refused')) expect(await rejection(asked)).toMatchObject({ transient: false, isRefusal: true, message });
      else await asked;
    }
    expect(heard).toEqual(replies.filter((each) => !each.endsWith('refused')).map((each) => each.split(' ')[1]));
    client.close();
  });
});

it('endpoints of two clusters in one list are what the doctor names', async () => {
  const status = JSON.stringify({ header: { cluster_id: '1' }, version: '3.5.0', leader: '1' });
  const other = await frontOf((path) => (path === '/v3/maintenance/status' ? [200, status] : [404, '404 page not found\n']));
  const report = await examined(etcdStore({ endpoints: [other.url, server.url], requestTimeout: 5000 }));
  expect(report.verdict).toMatchObject({ efficiency: 'no' });
  expect(report.of('role')).toMatchObject({ state: 'bad', advice: expect.stringContaining('one') });
});

it('an inbox is opened where one of two endpoints breaks off each watch', async () => {
  const { url } = await frontOf((path) => (path === '/v3/watch' ? [502, '<html>'] : undefined));
  beginWith(0, 2);
  const store = etcdStore({ endpoints: [url, server.url], requestTimeout: 5000 });
  const wakeUps = store.mutex.wakeUps!;
  await wakeUps.open(() => undefined);
  await eventually(() => wakeUps.isOpen);
  await store.close();
});

it('a learner gives no locks, and the voter does; the doctor tells them apart', async () => {
  const voter = await startEtcd();
  const learner = await startLearner(voter);
  const refused = { name: 'StoreError', transient: true, isRefusal: true, message: expect.stringContaining('the members that do') };
  expect(await rejection(open({ endpoints: [learner.url] }).acquire('order:42', { waitTimeout: 0 }))).toMatchObject(refused);
  for (const first of [0, 1]) {
    beginWith(first, 2);
    const locks = open({ endpoints: [learner.url, voter.url], requestTimeout: 5000 });
    await (await locks.acquire('order:42', { waitTimeout: 0 })).release();
  }
  expect((await examined(etcdStore({ endpoints: [learner.url] }))).of('role')).toMatchObject({ state: 'bad', seen: 'learners only' });
  const report = await examined(etcdStore({ endpoints: [learner.url, voter.url] }));
  expect(report.of('role')).toMatchObject({ state: 'warn', advice: expect.stringContaining('learners') });
  await Promise.all([voter, learner].map((member) => member.stop()));
});
