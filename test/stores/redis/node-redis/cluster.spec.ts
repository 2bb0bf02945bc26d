import { StoreError } from 'nestjs-distributed-lock/core';
import type { NodeRedisClient } from 'nestjs-distributed-lock/redis';
import { Socket } from 'node:net';
import * as five from 'redis';
import * as six from 'redis-v6';
import { NodeRedisNodes } from '../../../../lib/stores/redis/node-redis/node-redis.nodes.js';
import { eventually, staysTrue } from '../../../support/eventually.js';
import { slotOf, SLOTS, startCluster } from '../../../support/redis-cluster.js';
import { useOwnCluster } from '../cluster.setting.js';
import type { RedisServer } from '../../../support/redis-server.js';
import { usesEveryVerb } from '../every-verb.js';
import { rejection } from '../../../contract/rejection.js';
import { queued, woken } from '../waiting.js';

const KEY = 'order:42';
const EVENTS = ['connect', 'disconnect', 'error', 'node-error', 'node-ready'];
const patient = { ...woken, retryInterval: 50 };
const on = useOwnCluster({ masters: 3, replicas: 1, nodeTimeout: 1_500 });
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

  it.each<[string, object]>([
    ['that connects as little as it can', { minimizeConnections: true }],
    ['that reads from replicas', { useReplicas: true }],
    ['of RESP 3', { RESP: 3 }],
  ])('%s, grants, excludes, queues, wakes, renews and releases (G2, G4, G8)', async (_form, options) => {
    // Connected by its owner, and by the store.
    const clients = [await lent(options), await lent(options, false)] as const;
    await usesEveryVerb(setting.locks({ client: clients[0] }), setting.locks({ client: clients[1] }), KEY);
  });

  it('is left open, without a listener and without a connection of ours (G7), and may be used again', async () => {
    const client = await lent();
    const listeners = () => EVENTS.map((event) => client.listenerCount(event));
    const before = listeners();
    const connections = await newConnections();
    const stores = [1, 2].map(() => setting.locks({ client }));
    await Promise.all(stores.map((locks) => locks.using(KEY, () => undefined, patient)));
    expect(await connections()).toBe(on.cluster.masters.length);
    for (const locks of stores) await locks.close();
    await eventually(async () => expect([await connections(), ...listeners()]).toEqual([0, ...before]));
    expect(client.isOpen).toBe(true);
    expect(await setting.locks({ client }).using(KEY, () => 'result', patient)).toBe('result');
  });

  it('that its owner closes fails what is asked at once, until it is open again', async () => {
    const client = await lent();
    const locks = setting.locks({ client });
    await on.locks().acquire(KEY, woken);
    const waiting = rejection(locks.acquire(KEY, patient));
    await queued(setting, KEY, 1);
    client.destroy();
    expect(await waiting).toMatchObject({ name: 'StoreError', transient: false });
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
    const connections = await newConnections();
    const nodes = new NodeRedisNodes(
      client as never,
      () => undefined,
      () => undefined,
    );
    expect(await nodes.refresh()).toBe(true);
    expect(await connections()).toBe(on.cluster.masters.length);
    const asking = nodes.refresh();
    nodes.forget();
    expect(await asking).toBe(false);
    await eventually(async () => (await connections()) === 0);
  });

  it('closed while a master hangs leaves no connection behind (G7)', async () => {
    const client = await lent();
    const [master, other] = on.cluster.masters.slice(1) as [RedisServer, RedisServer];
    const connections = await newConnections([master]);
    await master.pause();
    setting.finally(() => master.resume());
    const locks = setting.locks({ client });
    await locks.using(on.cluster.keysOn(other, 1)[0]!, () => undefined, patient);
    await locks.close();
    await master.resume();
    await eventually(async () => (await connections()) === 0);
  });

  it('asks the remaining node for the keys of one that was taken out of the Cluster, which still answers (G9)', async () => {
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
    for (const key of keys) {
      const lease = await locks.acquire(key, patient);
      expect(await staying.get(key)).toBe(lease.owner);
      await lease.release();
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
    const locks = setting.locks({ client: await lent(), requestTimeout: 2_000 });
    await locks.using(`{${tag}}`, () => undefined, patient);
    await source.flushall();
    const written = watchWritesTo(from);
    setting.finally(written.stop);
    await source.call('CLIENT', 'PAUSE', 4_500, 'WRITE');
    const moving = [`{${tag}}alone`, `{${tag}}with another`];
    const acquire = (key: string) => locks.acquire(key, { ...patient, retryInterval: 100 });
    const leases = [acquire(moving[0]!)];
    await eventually(() => written.includes(moving[0]!));
    leases.push(acquire(moving[1]!), acquire(stays));
    await eventually(() => written.includes(stays));
    await target.call('CLUSTER', 'SETSLOT', slotOf(tag), 'IMPORTING', on.cluster.idOf(from));
    for (const node of [target, source]) await node.call('CLUSTER', 'SETSLOT', slotOf(tag), 'NODE', on.cluster.idOf(to));
    for (const lease of leases.slice(0, 2)) expect(await (await lease).release()).toBe(true);
    await target.config('RESETSTAT');
    // By then the node that had the slot has answered what it was asked before.
    expect(await (await leases[2]!).release()).toBe(true);
    // A release may follow, but nobody takes a key.
    await staysTrue(async () => {
      for (const key of moving) expect(await target.get(key)).toBeNull();
      expect(await target.info('commandstats')).not.toContain('cmdstat_set:');
    }, 1_000);
    await target.flushall();
    await source.call('CLUSTER', 'SETSLOT', slotOf(tag), 'IMPORTING', on.cluster.idOf(to));
    for (const node of [source, target]) await node.call('CLUSTER', 'SETSLOT', slotOf(tag), 'NODE', on.cluster.idOf(from));
  });

  it('costs no lease of other nodes when a master hangs, and finds the replica that is promoted, though the client does not look for it (G4, G9)', async () => {
    const { cluster } = on;
    const pairs = [0, 1].map((i) => [cluster.nodes[i]!, cluster.nodes[3 + i]!] as const);
    const [pair, otherPair] = pairs as [(typeof pairs)[0], (typeof pairs)[0]];
    const [here = '', free = ''] = cluster.keysOn(pair[0], 2);
    const locks = setting.locks({ client: await lent(), requestTimeout: 2_000 });
    const lost = jest.fn();
    locks.on('lost', lost);
    const others = await Promise.all(cluster.keysOn(otherPair[0], 5).map((key) => locks.acquire(key, { ...patient, keyTimeout: 10_000 })));
    await locks.using(here, () => undefined, patient);
    const isMaster = async (node: RedisServer): Promise<boolean> => {
      const client = node.client();
      return (await client.role().finally(() => client.disconnect()))[0] === 'master';
    };
    const [master, replica] = (await isMaster(pair[0])) ? pair : [pair[1], pair[0]];
    await master.pause();
    setting.finally(() => master.resume());
    const error = await rejection(locks.acquire(here, { waitTimeout: 300, retryInterval: 50 }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true });
    await eventually(() => isMaster(replica), { every: 10 });
    await locks.using(free, () => undefined, { ...patient, retryInterval: 100 });
    expect(lost).not.toHaveBeenCalled();
    for (const other of others) expect(await other.release()).toBe(true);
    await master.resume();
    await eventually(async () => !(await isMaster(master)));
  });
});

/** Counts the connections to these nodes that are there now and were not before; those that a test before this one has left do not count. */
async function newConnections(nodes: readonly RedisServer[] = on.cluster.nodes): Promise<() => Promise<number>> {
  const observers = nodes.map((node) => node.client());
  setting.finally(() => observers.forEach((observer) => observer.disconnect()));
  const lists = async () => {
    const texts = await Promise.all(observers.map((each) => each.call('CLIENT', 'LIST', 'TYPE', 'NORMAL')));
    return texts.flatMap((text, node) => [...String(text).matchAll(/^id=(\d+)/gm)].map(([, id]) => `${node} ${id}`));
  };
  const before = new Set(await lists());
  return async () => (await lists()).filter((each) => !before.has(each)).length;
}

/** What is written to this node. */
function watchWritesTo({ port }: RedisServer): { includes: (text: string) => boolean; stop: () => void } {
  let all = '';
  const spies = (['_write', '_writev'] as const).map((name) => {
    const write = Socket.prototype[name] as (this: Socket, ...args: unknown[]) => void;
    return jest.spyOn(Socket.prototype, name).mockImplementation(function (this: Socket, ...args: unknown[]) {
      const [data] = args as [unknown];
      if (this.remotePort === port)
        all += name === '_writev' ? (data as { chunk: unknown }[]).map(({ chunk }) => String(chunk)).join('') : String(data);
      return write.apply(this, args);
    });
  });
  return { includes: (text) => all.includes(text), stop: () => spies.forEach((spy) => spy.mockRestore()) };
}
