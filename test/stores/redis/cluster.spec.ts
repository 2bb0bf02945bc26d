import { Cluster, type ClusterOptions } from 'ioredis';
import type { Locks } from 'nestjs-distributed-lock/core';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { startClusterNode } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { usesEveryVerb } from './every-verb.js';
import { endOf, loadScripts, outcomeOf, shaOf, SLACK, useRedis } from './setting.js';

const KEY = 'order:42';
const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };
const setting = useRedis(); // for its locks and its cleaning up; the server is no part of the Cluster
let node: RedisServer;
let proxy: TcpProxy;

beforeAll(async () => {
  node = await startClusterNode();
});
afterAll(() => node.stop());
beforeEach(async () => {
  const redis = node.client();
  await redis.flushall();
  await loadScripts(redis);
  redis.disconnect();
  proxy = await startProxy(node.connection);
  setting.finally(() => proxy.close());
});

const nodes = () => [{ host: '127.0.0.1', port: node.port! }];
/** Leads every connection to the node through the proxy. */
const throughProxy = (): ClusterOptions => ({ natMap: { [`127.0.0.1:${node.port}`]: proxy.connection } });

const FORMS: Record<string, (options?: ClusterOptions) => RedisStoreOptions> = {
  cluster: (clusterOptions) => ({ cluster: nodes(), clusterOptions, requestTimeout: 1_000 }),
  'a client that is a Cluster': (clusterOptions) => {
    const client = new Cluster(nodes(), clusterOptions);
    setting.finally(() => client.disconnect());
    return { client };
  },
};

describe.each(Object.entries(FORMS))('a store made with %s', (_, form) => {
  it.each([undefined, 'app:', '{app}:'])(
    'grants, excludes, queues, renews and releases, with a hash tag in the key and without, with the keyPrefix %p',
    async (keyPrefix) => {
      const [locks, others] = [setting.locks(form({ keyPrefix })), setting.locks(form({ keyPrefix }))];
      await Promise.all([KEY, 'order:{42}', '{order}'].map((key) => usesEveryVerb(locks, others, key)));
    },
  );

  it('is used again within a second of the return of the server (G9)', async () => {
    const locks = setting.locks(form());
    await locks.using(KEY, () => undefined, patient);
    await node.pause();
    const { error, took } = await outcomeOf(locks.acquire(KEY, { waitTimeout: 300, retryInterval: 50 }));
    const survivor = locks.acquire('survivor', { ...patient, waitTimeout: Infinity, retryInterval: 100 });
    await node.resume();
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(took).toBeLessThan(300 + 1_000 + SLACK);
    const back = await outcomeOf(survivor);
    expect(back.took).toBeLessThan(1_000 + SLACK);
    await back.value!.release();
  });

  describe('when a request is applied, and its reply lost with the connection', () => {
    let locks: Locks;
    const lost = jest.fn();

    beforeEach(async () => {
      locks = setting.locks(form(throughProxy()));
      lost.mockClear();
      locks.on('lost', lost);
      await locks.using('warm-up', () => undefined, patient);
    });

    it('which is an acquire: it is granted, to nobody else (G6)', async () => {
      const loss = proxy.dropReplyTo(shaOf('acquire'));
      const lease = await locks.acquire(KEY, patient);
      expect(loss.lost).toBe(1);
      expect(await setting.locks(form()).tryAcquire(KEY)).toBeNull();
      expect(await lease.release()).toBe(true);
      expect((await setting.locks(form()).acquire(KEY, patient)).fencingToken).toBeGreaterThan(lease.fencingToken!);
    });

    it('which is a renewal: the lease is not taken for lost (G4, G6)', async () => {
      const lease = await locks.acquire(KEY, { ...patient, keyTimeout: 3_000 });
      const loss = proxy.dropReplyTo(shaOf('renew'));
      await eventually(() => loss.lost === 1);
      const end = endOf(lease);
      await eventually(() => endOf(lease) > end + 100);
      expect(await lease.release()).toBe(true);
      expect(lost).not.toHaveBeenCalled();
    });

    it('which is a release: the result comes through, with no false loss (G6, G10)', async () => {
      const loss = proxy.dropReplyTo(shaOf('release'));
      const { value, took } = await outcomeOf(locks.using(KEY, () => 'result', patient));
      expect(value).toBe('result');
      expect(took).toBeLessThan(1_000 + SLACK);
      expect(loss.lost).toBe(1);
      expect(lost).not.toHaveBeenCalled();
    });
  });
});

describe('the keys of one lock', () => {
  it.each([undefined, 'app:', '{app}:'])('share a Cluster slot, with the keyPrefix %p', async (keyPrefix) => {
    const redis = node.client();
    const locks = setting.locks({ cluster: nodes(), clusterOptions: { keyPrefix } });
    for (const key of ['plain', 'with:{a}:tag', '{all}']) {
      await redis.flushall();
      const lease = await locks.acquire(key, patient);
      const wait = locks.acquire(key, { ...patient, fair: true, reentrant: false });
      await eventually(async () => (await redis.keys('*')).length === 3);
      const keys = await redis.keys('*');
      expect(keys).toContain(`${keyPrefix ?? ''}${key}`);
      expect(new Set(await Promise.all(keys.map((name) => redis.cluster('KEYSLOT', name)))).size).toBe(1);
      await lease.release();
      await (await wait).release();
    }
    redis.disconnect();
  });
});
