import { Cluster } from 'ioredis';
import type { RedisServer } from '../../support/redis-server.js';
import { StoreError } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { slotOf } from '../../support/redis-cluster.js';
import { startCallers } from './callers.js';
import { useOwnCluster } from './cluster.setting.js';
import { endOf } from './setting.js';
import { expectWoken, queued, waiterFor, woken } from './waiting.js';

const KEY = 'order:42';
const on = useOwnCluster({ masters: 3, replicas: 1 });
const { setting } = on;
const isMaster = (nodes: RedisServer[]) => on.each(async (client) => (await client.role())[0] === 'master', nodes);
const patient = { ...woken, retryInterval: 50 };

describe('replicaAcks on a Cluster', () => {
  const open = () => on.locks({ requestTimeout: 900, replicaAcks: 1 });

  it('asks the replica of the node that has the key', async () => {
    const [key, other] = on.keys() as [string, string];
    const replica = on.cluster.nodes[on.cluster.masters.length]!;
    const locks = open();
    for (const each of [key, other]) await locks.using(each, () => undefined, patient);
    await replica.pause();
    setting.finally(() => replica.resume());
    const error = await rejection(locks.acquire(key, { ...woken, waitTimeout: 0 }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true, message: expect.stringContaining('0 of 1 replica has it') });
    await locks.using(other, () => undefined, patient);
    await replica.resume();
    await locks.using(key, () => undefined, patient);
  });

  it('grants many keys at once, and those of a slot that has moved', async () => {
    const { masters, moveSlot, keysOn } = on.cluster;
    const locks = open();
    const leases = await Promise.all(Array.from({ length: 200 }, (_, index) => locks.acquire(`many:${index}`, patient)));
    await Promise.all(leases.map((lease) => lease.release()));
    const [key = ''] = keysOn(masters[2]!, 1, 'moved:');
    const [to, , from] = masters as [RedisServer, RedisServer, RedisServer];
    await moveSlot({ slot: slotOf(key), from, to });
    setting.finally(() => moveSlot({ slot: slotOf(key), from: to, to: from }));
    const lease = await locks.acquire(key, patient);
    const [owner] = await on.each((client) => client.get(key), [to]);
    expect(owner).toBe(lease.owner);
    expect(await lease.release()).toBe(true);
  });

  it('renew leases while their slot moves (G4)', async () => {
    const { masters, moveSlot, keysOn } = on.cluster;
    const [to, , from] = masters as [RedisServer, RedisServer, RedisServer];
    const locks = on.locks({ replicaAcks: 1, clusterOptions: { keyPrefix: 'app:' } });
    const lost = jest.fn();
    locks.on('lost', lost);
    const tag = keysOn(from, 1, 'moved:')[0]!;
    const keys = ['a', 'b'].map((name) => `{${tag}}:${name}`);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, { ...patient, keyTimeout: 5_000 })));
    const renewed = async (): Promise<void> => {
      const ends = leases.map(endOf);
      await eventually(() => expect(lost.mock.calls.length > 0 || leases.every((lease, i) => endOf(lease) > ends[i]! + 200)).toBe(true));
    };
    setting.finally(() => moveSlot({ slot: slotOf(tag), from: to, to: from }));
    await moveSlot({ slot: slotOf(tag), from, to, between: renewed });
    expect(lost).not.toHaveBeenCalled();
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true]);
  });
});

describe('waiters on a Cluster, whose node of the inbox is a replica', () => {
  it('that hangs, listen at another one, and are woken again (G8)', async () => {
    const [mine, others] = [on.locks(), on.locks({ requestTimeout: 1_000 })];
    // It listens nowhere, since it never waits.
    const passOn = await waiterFor(setting, KEY, others, { ...woken, retryInterval: 500 }, mine);
    await queued(setting, KEY, 1);
    const [node] = await eventually(async () => {
      const nodes = await on.listeners();
      expect(nodes).toHaveLength(1);
      return nodes;
    });
    // What is asked of the masters goes on, and the connection to the replica stays open.
    expect(on.cluster.masters).not.toContain(node);
    await node!.pause();
    setting.finally(() => node!.resume());
    const rest = on.cluster.nodes.filter((each) => each !== node);
    await eventually(async () => expect(await on.listeners(rest)).toHaveLength(1));
    // Who waits for this key does not ask by itself.
    const passOnOther = await waiterFor(setting, 'other', others, woken, mine);
    await queued(setting, 'other', 1);
    await passOnOther();
    await passOn();
  });

  it('that dies, get the next key by asking for it, and the later ones by messages again (G8)', async () => {
    const client = new Cluster(on.cluster.addresses, { lazyConnect: true });
    const [mine, others] = [on.locks(), setting.overIoredis({ client, requestTimeout: 5_000 })];
    // Both have waited, so both listen.
    await expectWoken(setting, mine, others, KEY);
    await expectWoken(setting, others, mine, KEY);
    const holder = await mine.acquire(KEY, woken);
    const next = others.acquire(KEY, { ...woken, retryInterval: 1_000 });
    await queued(setting, KEY, 1);
    const nodes = await eventually(async () => {
      const all = await on.listeners();
      expect(all).toHaveLength(2);
      return all;
    });
    // All that replicas would do is to take over, which nobody asks them to.
    expect(on.cluster.masters).not.toEqual(expect.arrayContaining(nodes));
    await Promise.all([...nodes.map((node) => node.kill()), holder.release()]);
    await (await next).release();
    await eventually(async () => expect(await on.listeners()).toHaveLength(2));
    await expectWoken(setting, mine, others, KEY);
    await Promise.all([...new Set(nodes)].map((node) => node.restart()));
    await eventually(async () => {
      for (const state of await on.each((client) => client.info('replication'), nodes)) expect(state).not.toContain('link_status:down');
    });
  });
});

describe('a master of a Cluster', () => {
  beforeAll(() =>
    on.each(async (client) => {
      // The others call a silent one down so soon only here.
      await client.config('SET', 'cluster-node-timeout', 1_500);
      // A replica that was started again has what it was first started with.
      await client.config('SET', 'cluster-replica-no-failover', 'no');
    }, on.cluster.nodes),
  );

  const WAYS: [string, (pair: { master: RedisServer; replica: RedisServer }) => Promise<unknown>, (old: RedisServer) => Promise<void>][] = [
    ['is killed', ({ master }) => master.kill(), (old) => old.restart()],
    ['hangs', ({ master }) => master.pause(), (old) => old.resume()],
    [
      'is replaced by CLUSTER FAILOVER',
      ({ replica }) => on.each((client) => client.call('CLUSTER', 'FAILOVER'), [replica]),
      () => Promise.resolve(),
    ],
  ];

  it.each(WAYS)(
    'that %s: its replica serves the callers of all processes, and the fenced counter is right (G2, G8, G9)',
    async (way, fail, back) => {
      // Each way with other nodes.
      const index = WAYS.findIndex(([each]) => each === way);
      const [master, replica] = [on.cluster.nodes[index]!, on.cluster.nodes[3 + index]!];
      const keys = on.keys();
      const options = { keyTimeout: 1_000, waitTimeout: 100_000, retryInterval: 200 };
      const callers = await startCallers(setting, 2, { store: on.where, keys: [keys[index]!, ...keys], callers: 40, options });
      await callers.goOn(200);
      await fail({ master, replica });
      await eventually(async () => expect(await isMaster([replica])).toEqual([true]));
      await callers.goOn(100, keys[index]);
      await back(master);
      for (const { errors } of await callers.stop()) expect(errors).toEqual([]);
      await eventually(async () => expect(await isMaster([master])).toEqual([false]));
    },
  );
});
