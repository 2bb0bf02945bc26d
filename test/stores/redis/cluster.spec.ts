import { Cluster, type ClusterOptions } from 'ioredis';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { startClusterNode } from '../../support/redis-cluster.js';
import type { RedisServer } from '../../support/redis-server.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { usesEveryVerb } from './every-verb.js';
import { loadScripts, outcomeOf, SLACK, useRedis } from './setting.js';

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

  it.each([undefined, 'app:', '{app}:'])('shows its keys to operators, and frees them, with the keyPrefix %p', async (keyPrefix) => {
    const [locks, operator] = [setting.locks(form({ keyPrefix })), setting.locks(form({ keyPrefix }))];
    const leases = await Promise.all([KEY, 'order:{43}'].map((key) => locks.acquire(key, patient)));
    const found: string[] = [];
    for await (const { key, holders } of operator.list({ pattern: 'order:*' })) found.push(`${key} ${holders[0]!.owner}`);
    expect(found.sort()).toEqual(leases.map(({ key, owner }) => `${key} ${owner}`).sort());
    for (const { key, owner } of leases) {
      expect(await operator.forceRelease(key, { reason: 'stuck', grace: 0 })).toEqual({ outcome: 'forced', holder: owner });
      expect(await operator.inspect(key)).toMatchObject({ kind: 'free' });
    }
    for (const lease of leases) expect(await lease.release()).toBe(false);
  });

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
