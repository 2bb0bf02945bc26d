import type { NodeRedisClient } from 'nestjs-distributed-lock/redis';
import * as five from 'redis';
import * as six from 'redis-v6';
import type { NodeRedisCluster } from '../../../../lib/stores/redis/node-redis/node-redis.cluster.js';
import { redisClientOf } from '../../../../lib/stores/redis/node-redis/node-redis.client.js';
import { slotOf } from '../../../../lib/stores/redis/redis.slots.js';
import { eventually } from '../../../support/eventually.js';
import { startRedis, type RedisServer } from '../../../support/redis-server.js';
import { usesEveryVerb } from '../every-verb.js';
import { outcomeOf, SLACK, useRedis } from '../setting.js';

const SLOTS = 16_384;
const KEY = 'order:42';
const patient = { keyTimeout: 10_000, waitTimeout: 20_000 };
const setting = useRedis(); // for its locks and its cleaning up; the server is no part of the Cluster
/** Two masters, and a replica of the first. */
let nodes: RedisServer[];

beforeAll(async () => {
  const args = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', '--cluster-node-timeout', '1000'];
  const more = ['--repl-diskless-sync-delay', '0', '--cluster-replica-validity-factor', '0', '--cluster-require-full-coverage', 'no'];
  nodes = await Promise.all([1, 2, 3].map(() => startRedis({ port: 'free', args: [...args, ...more] })));
  const [first, second, third] = nodes.map((node) => node.client());
  const slots = Array.from({ length: SLOTS }, (_, slot) => slot);
  await first!.cluster('ADDSLOTS', ...slots.slice(0, SLOTS / 2));
  await second!.cluster('ADDSLOTS', ...slots.slice(SLOTS / 2));
  for (const other of [second!, third!]) await other.cluster('MEET', '127.0.0.1', nodes[0]!.port!);
  const id = (await first!.cluster('MYID')) as unknown as string;
  await eventually(async () => expect(await third!.cluster('REPLICATE', id)).toBe('OK'), { within: 20_000 });
  for (const node of [first!, second!, third!]) {
    await eventually(async () => /cluster_state:ok[^]*cluster_slots_assigned:16384/.test(await node.cluster('INFO')), { within: 20_000 });
  }
  await eventually(async () => expect(await third!.info('replication')).toMatch(/master_link_status:up/), { within: 20_000 });
  for (const node of [first!, second!, third!]) node.disconnect();
}, 90_000);
afterAll(() => Promise.all(nodes.map((node) => node.stop())));

const keysOf = (isFirst: boolean, count: number) =>
  Array.from({ length: 200 }, (_, i) => `key:${i}`)
    .filter((key) => slotOf(key) < SLOTS / 2 === isFirst)
    .slice(0, count);

describe.each([
  ['5', five.createCluster],
  ['6', six.createCluster as unknown as typeof five.createCluster],
])('a cluster of node-redis %s that is lent to a store', (_, createCluster) => {
  async function lent(options: object = {}, isConnected = true): Promise<NodeRedisClient> {
    const rootNodes = nodes.slice(1).map((node) => ({ socket: { host: '127.0.0.1', port: node.port! } }));
    const client = createCluster({ rootNodes, ...options });
    client.on('error', () => undefined);
    setting.finally(() => client.isOpen && client.destroy());
    if (isConnected) await client.connect();
    return client as NodeRedisClient;
  }

  it.each<[string, object, boolean]>([
    ['connected', {}, true],
    ['not connected yet', {}, false],
    ['that connects as little as it can', { minimizeConnections: true }, true],
    ['that reads from replicas', { useReplicas: true }, true],
    ['with RESP 3', { RESP: 3 }, true],
  ])('%s, grants, excludes, queues, renews and releases on each node, and is left without a listener (G7)', async (_, options, isOpen) => {
    const client = (await lent(options, isOpen)) as NodeRedisClient & NodeJS.EventEmitter;
    const before = ['error', 'connect', 'node-error', 'disconnect'].map((event) => client.listenerCount(event));
    const [locks, others] = [setting.locks({ client }), setting.locks({ client: await lent(options, isOpen) })];
    await Promise.all([keysOf(true, 1)[0]!, keysOf(false, 1)[0]!, '{order}'].map((key) => usesEveryVerb(locks, others, key)));
    await locks.close();
    expect(['error', 'connect', 'node-error', 'disconnect'].map((event) => client.listenerCount(event))).toEqual(before);
  });

  it('keeps the order of the calls', async () => {
    const locks = setting.locks({ client: await lent() });
    for (let i = 0; i < 30; i++) {
      const lease = await locks.acquire(KEY, patient);
      const [answer, next] = await Promise.all([lease.release(), locks.tryAcquire(KEY)]);
      expect([answer, next?.key]).toEqual([true, KEY]);
      await next!.release();
    }
  });

  it('shows its nodes, which can be duplicated and subscribe, and sends several requests to the node of a key', async () => {
    const adapter = redisClientOf(await lent({ useReplicas: true })) as NodeRedisCluster;
    await eventually(() => adapter.status === 'ready');
    expect(['all', 'master', 'slave'].map((role) => adapter.nodes(role as 'all').length)).toEqual([3, 2, 1]);
    expect(adapter.nodes('master')).toEqual(adapter.nodes('master'));
    expect(
      adapter
        .nodes('all')
        .map(({ options }) => options.port)
        .sort(),
    ).toEqual(nodes.map(({ port }) => port).sort());
    for (const node of adapter.nodes('all')) {
      const subscriber = node.duplicate();
      const heard: unknown[] = [];
      subscriber.on('message', (...message) => heard.push(message));
      await subscriber.connect();
      await subscriber.subscribe('news');
      await adapter.publish('news', 'text');
      await eventually(() => heard.length === 1);
      expect(heard).toEqual([['news', 'text']]);
      subscriber.disconnect();
    }
    for (const key of [keysOf(true, 1)[0]!, keysOf(false, 1)[0]!]) {
      const replies = await adapter.pipeline().eval("return redis.call('SET', KEYS[1], 'x')", 1, key).call('WAIT', 0, 10).exec();
      expect(replies[0]).toEqual([null, 'OK']);
      expect(replies[1]![0]).toBeNull();
    }
  });

  it('follows a slot to its new node', async () => {
    const [from, to] = [nodes[1]!.client(), nodes[0]!.client()];
    const [key = ''] = keysOf(false, 1);
    const slot = slotOf(key);
    const locks = setting.locks({ client: await lent() });
    await locks.using(key, () => undefined, patient);
    await from.flushall();
    const ids = [await to.cluster('MYID'), await from.cluster('MYID')] as unknown as string[];
    for (const [index, id] of ids.entries()) {
      for (const node of index === 0 ? [to, from] : [from, to]) await node.cluster('SETSLOT', slot, 'NODE', id);
      await locks.using(key, () => undefined, patient);
      const adapter = redisClientOf(await lent()) as NodeRedisCluster;
      await eventually(async () => {
        const [first] = await adapter.pipeline().eval("return redis.call('SET', KEYS[1], 'x', 'PX', 1)", 1, key).call('WAIT', 0, 10).exec();
        expect(first).toEqual([null, 'OK']);
      });
      await (index === 0 ? to : from).flushall();
    }
    from.disconnect();
    to.disconnect();
  });

  it('with a node that is away fails its keys in time, costs no other key anything, and finds the replica that is promoted (G4, G9)', async () => {
    const locks = setting.locks({ client: await lent(), requestTimeout: 500 });
    const [here = ''] = keysOf(true, 1);
    const others = await Promise.all(keysOf(false, 5).map((key) => locks.acquire(key, { ...patient, keyTimeout: 3_000 })));
    await locks.using(here, () => undefined, patient);
    const roles = await Promise.all(
      [nodes[0]!, nodes[2]!].map(async (node) => {
        const redis = node.client();
        const [role] = (await redis.role()) as unknown as [string];
        redis.disconnect();
        return role;
      }),
    );
    const master = [nodes[0]!, nodes[2]!][roles.indexOf('master')]!;
    await master.kill();
    const { error, took } = await outcomeOf(locks.acquire(here, { waitTimeout: 300, retryInterval: 50 }));
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(took).toBeLessThan(300 + 500 + SLACK);
    const lease = await locks.acquire(here, { ...patient, retryInterval: 100 });
    for (const other of others) {
      other.assertHeld();
      expect(await other.release()).toBe(true);
    }
    expect(await lease.release()).toBe(true);
    await master.restart();
  }, 60_000);
});
