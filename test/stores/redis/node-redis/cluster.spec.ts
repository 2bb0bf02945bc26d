import { StoreError } from 'nestjs-distributed-lock/core';
import type { NodeRedisClient } from 'nestjs-distributed-lock/redis';
import * as five from 'redis';
import * as six from 'redis-v6';
import { NodeRedisNodes } from '../../../../lib/stores/redis/node-redis/node-redis.nodes.js';
import { eventually } from '../../../support/eventually.js';
import { slotOf, SLOTS, startCluster } from '../../../support/redis-cluster.js';
import { useCluster } from '../cluster.setting.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { pause } from '../../../support/time.js';
import { usesEveryVerb } from '../every-verb.js';
import { outcomeOf, SLACK } from '../setting.js';
import { expectWoken } from '../waiting.js';

const KEY = 'order:42';
const EVENTS = ['connect', 'disconnect', 'error', 'node-error', 'node-ready'];
const patient = { keyTimeout: 10_000, waitTimeout: 20_000 };
const on = useCluster({ masters: 3, replicas: 1, nodeTimeout: 1_500 });
const { setting } = on;

describe.each([
  ['5', five.createCluster],
  ['6', six.createCluster as unknown as typeof five.createCluster],
])('a cluster of node-redis %s that is lent to a store', (_, createCluster) => {
  type Client = NodeRedisClient & NodeJS.EventEmitter;
  async function lent(options: object = {}, isConnected = true): Promise<Client> {
    const client = createCluster({ rootNodes: on.cluster.addresses.map((socket) => ({ socket })), ...options });
    client.on('error', () => undefined);
    setting.finally(() => client.isOpen && client.destroy());
    if (isConnected) await client.connect();
    return client;
  }

  it.each<[string, object, boolean]>([
    ['that is connected', {}, true],
    ['that is not connected yet', {}, false],
    ['that connects as little as it can', { minimizeConnections: true }, true],
    ['that reads from replicas', { useReplicas: true }, true],
    ['of RESP 3', { RESP: 3 }, true],
  ])('%s, grants, excludes, queues, wakes, renews and releases on each node (G2, G4, G8)', async (_form, options, isConnected) => {
    const [locks, others] = [
      setting.locks({ client: await lent(options, isConnected) }),
      setting.locks({ client: await lent(options, isConnected) }),
    ];
    for (const master of on.cluster.masters) {
      const [key = ''] = on.cluster.keysOn(master, 1);
      await usesEveryVerb(locks, others, key);
      await expectWoken(setting, locks, others, key);
    }
  });

  it('is left open, without a listener and without a connection of ours (G7), and may be used again', async () => {
    const clients = on.cluster.nodes.map((node) => node.client());
    setting.finally(() => clients.forEach((client) => client.disconnect()));
    const lists = () => Promise.all(clients.map((client) => client.call('CLIENT', 'LIST', 'TYPE', 'NORMAL')));
    const connections = async (): Promise<number> => (await lists()).join('').match(/^id=/gm)!.length;
    const client = await lent();
    const left = async () => [await connections(), ...EVENTS.map((event) => client.listenerCount(event))];
    const before = await left();
    const stores = [1, 2].map(() => setting.locks({ client }));
    await Promise.all(stores.map((locks) => locks.using(KEY, () => undefined, patient)));
    expect(await connections()).toBe(before[0]! + on.cluster.masters.length);
    for (const locks of stores) await locks.close();
    await eventually(async () => expect(await left()).toEqual(before));
    expect(client.isOpen).toBe(true);
    expect(await setting.locks({ client }).using(KEY, () => 'result', patient)).toBe('result');
  });

  it('that its owner closes fails what is asked at once, until it is open again', async () => {
    const client = await lent();
    const locks = setting.locks({ client });
    await on.locks().acquire(KEY, patient);
    const waiting = outcomeOf(locks.acquire(KEY, patient));
    await eventually(async () => (await setting.redis.zcard(`{${KEY}}:queue`)) === 1);
    client.destroy();
    const { error, took } = await waiting;
    expect(error).toMatchObject({ name: 'StoreError', transient: false });
    expect(took).toBeLessThan(1_000 + SLACK);
    await setting.redis.flushall().catch(() => undefined);
    await client.connect();
    expect(await locks.using('free', () => 'result', patient)).toBe('result');
  });

  it('reaches its nodes where the addresses that they tell are not theirs here', async () => {
    const proxies = await Promise.all(on.cluster.nodes.map((node) => setting.proxy(node.connection as { port: number })));
    const addressOf = (index: number): string => `127.0.0.1:${on.cluster.nodes[index]!.port}`;
    const map = Object.fromEntries(proxies.map(({ connection }, index) => [addressOf(index), connection]));
    for (const nodeAddressMap of [map, (address: string) => map[address]!]) {
      const client = await lent({ nodeAddressMap });
      const before = proxies.map((proxy) => proxy.connections);
      const locks = setting.locks({ client });
      await locks.using(KEY, () => undefined, patient);
      const more = proxies.map((proxy, index) => proxy.connections - before[index]!);
      expect(more.reduce((sum, count) => sum + count)).toBe(on.cluster.masters.length);
      await locks.close();
    }
  });

  it('closed while it asks for the slots leaves no connection behind (G7)', async () => {
    const client = await lent();
    const observers = on.cluster.nodes.map((node) => node.client());
    setting.finally(() => observers.forEach((observer) => observer.disconnect()));
    const connections = async (): Promise<number> =>
      (await Promise.all(observers.map((each) => each.call('CLIENT', 'LIST', 'TYPE', 'NORMAL')))).join('').match(/^id=/gm)!.length;
    const before = await connections();
    const nodes = new NodeRedisNodes(
      client as never,
      () => undefined,
      () => undefined,
    );
    expect(await nodes.refresh()).toBe(true);
    expect(await connections()).toBe(before + on.cluster.masters.length);
    const asking = nodes.refresh();
    nodes.forget();
    expect(await asking).toBe(false);
    await eventually(async () => (await connections()) === before);
  });

  it('closed while a master hangs leaves no connection behind (G7)', async () => {
    const client = await lent();
    const [master, other] = on.cluster.masters.slice(1) as [RedisServer, RedisServer];
    const observer = master.client();
    const connections = async (): Promise<number> =>
      String(await observer.call('CLIENT', 'LIST', 'TYPE', 'NORMAL')).match(/^id=/gm)!.length;
    const before = await connections();
    await master.pause();
    setting.finally(() => master.resume());
    const locks = setting.locks({ client });
    await locks.using(on.cluster.keysOn(other, 1)[0]!, () => undefined, patient);
    await locks.close();
    await master.resume();
    await eventually(async () => (await connections()) === before);
    observer.disconnect();
  });

  it('finds the keys of a node that was taken out of the Cluster', async () => {
    const two = await startCluster({ masters: 2 });
    setting.finally(() => two.stop());
    const client = await lent({ rootNodes: two.addresses.map((socket) => ({ socket })) });
    const locks = setting.locks({ client });
    const keys = two.masters.flatMap((master) => two.keysOn(master, 5));
    await Promise.all(keys.map((key) => locks.using(key, () => undefined, patient)));
    const [stays, goes] = two.masters as [RedisServer, RedisServer];
    const [staying, going] = [stays.client(), goes.client()];
    await going.flushall();
    await going.call('CLUSTER', 'RESET', 'SOFT');
    // With it its slots are forgotten.
    await staying.call('CLUSTER', 'FORGET', two.idOf(goes));
    await staying.call('CLUSTER', 'ADDSLOTSRANGE', SLOTS / 2, SLOTS - 1);
    for (const key of keys) await locks.using(key, () => undefined, { ...patient, retryInterval: 50 });
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
  it('follows a key to the node to which its slot moves, and to which it has moved (G2)', async () => {
    const [from, to] = on.cluster.masters.slice(1) as [RedisServer, RedisServer];
    const [key = ''] = on.cluster.keysOn(from, 1);
    const slot = slotOf(key);
    const [source, target] = [from.client(), to.client()];
    const locks = setting.locks({ client: await lent() });
    let holder = await locks.acquire(key, patient);
    for (const [old, next, oldNode, nextNode] of [
      [source, target, from, to],
      [target, source, to, from],
    ] as const) {
      await next.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', on.cluster.idOf(oldNode));
      await old.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', on.cluster.idOf(nextNode));
      await old.call('MIGRATE', '127.0.0.1', nextNode.port!, '', 0, 1_000, 'KEYS', ...(await old.keys(`*${key}*`)));
      // ASK
      await holder.renew();
      for (const node of [next, old]) await node.call('CLUSTER', 'SETSLOT', slot, 'NODE', on.cluster.idOf(nextNode));
      // MOVED
      expect(await holder.release()).toBe(true);
      holder = (await locks.tryAcquire(key, patient))!;
      expect(await next.get(key)).toBe(holder.owner);
    }
    expect(await holder.release()).toBe(true);
  });

  it('sends no request on to another node once its caller has been answered (G6)', async () => {
    const [from, to] = on.cluster.masters.slice(1) as [RedisServer, RedisServer];
    const [tag = '', stays = ''] = on.cluster.keysOn(from, 2);
    const [source, target] = [from.client(), to.client()];
    const locks = setting.locks({ client: await lent(), requestTimeout: 500 });
    await locks.using(`{${tag}}`, () => undefined, patient);
    await source.flushall();
    await source.call('CLIENT', 'PAUSE', 2_000, 'WRITE');
    const moving = [`{${tag}}alone`, `{${tag}}with another`];
    const acquire = (key: string) => locks.acquire(key, { ...patient, keyTimeout: 30_000, retryInterval: 100 });
    const leases = [acquire(moving[0]!)];
    await pause(10);
    leases.push(acquire(moving[1]!), acquire(stays));
    await pause(100);
    await target.call('CLUSTER', 'SETSLOT', slotOf(tag), 'IMPORTING', on.cluster.idOf(from));
    for (const node of [target, source]) await node.call('CLUSTER', 'SETSLOT', slotOf(tag), 'NODE', on.cluster.idOf(to));
    for (const lease of leases.slice(0, 2)) expect(await (await lease).release()).toBe(true);
    await target.config('RESETSTAT');
    expect(await (await leases[2]!).release()).toBe(true);
    // By then the node that had the slot has answered what it was asked before.
    await pause(2_500);
    for (const key of moving) expect(await target.get(key)).toBeNull();
    // A release may have followed, but nobody has taken a key.
    expect(await target.info('commandstats')).not.toContain('cmdstat_set:');
    await target.flushall();
    await source.call('CLUSTER', 'SETSLOT', slotOf(tag), 'IMPORTING', on.cluster.idOf(to));
    for (const node of [source, target]) await node.call('CLUSTER', 'SETSLOT', slotOf(tag), 'NODE', on.cluster.idOf(from));
  });

  it('costs no lease of other nodes when a master hangs, and finds the replica that is promoted within a second, without a word of the client (G4, G9)', async () => {
    const { cluster } = on;
    const pairs = [0, 1].map((i) => [cluster.nodes[i]!, cluster.nodes[3 + i]!] as const);
    const [pair, otherPair] = pairs as [(typeof pairs)[0], (typeof pairs)[0]];
    const [here = '', free = ''] = cluster.keysOn(pair[0], 2);
    const locks = setting.locks({ client: await lent(), requestTimeout: 500 });
    const lost = jest.fn();
    locks.on('lost', lost);
    const others = await Promise.all(cluster.keysOn(otherPair[0], 5).map((key) => locks.acquire(key, { ...patient, keyTimeout: 3_000 })));
    await locks.using(here, () => undefined, patient);
    const isMaster = async (node: RedisServer): Promise<boolean> => {
      const client = node.client();
      return (await client.role().finally(() => client.disconnect()))[0] === 'master';
    };
    const [master, replica] = (await isMaster(pair[0])) ? pair : [pair[1], pair[0]];
    await master.pause();
    setting.finally(() => master.resume());
    const { error, took } = await outcomeOf(locks.acquire(here, { waitTimeout: 300, retryInterval: 50 }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true });
    expect(took).toBeLessThan(300 + 500 + SLACK);
    await eventually(() => isMaster(replica), { within: 20_000, every: 10 });
    const start = performance.now();
    await locks.using(free, () => undefined, { ...patient, retryInterval: 100 });
    expect(performance.now() - start).toBeLessThan(1_000 + SLACK);
    expect(lost).not.toHaveBeenCalled();
    for (const other of others) expect(await other.release()).toBe(true);
    await master.resume();
    await eventually(async () => !(await isMaster(master)), { within: 20_000 });
  }, 60_000);
});
