// A store works over connections of its own to where the client of an app leads, as the same user, whatever that client is, does and suffers.
import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis';
import { Cluster as ClusterOfFive, Redis as Five } from 'ioredis-v5';
import { Cluster as ClusterOfIovalkey, Redis as Iovalkey } from 'iovalkey';
import { LockConfigError, Locks } from 'nestjs-distributed-lock/core';
import { type NodeRedisClient, type RedisClient, redisStore } from 'nestjs-distributed-lock/redis';
import type { EventEmitter } from 'node:events';
import { connect } from 'node:net';
import * as five from 'redis';
import * as six from 'redis-v6';
import { clientsOf } from '../../../lib/stores/redis/connection/own.client.js';
import { eventually } from '../../support/eventually.js';
import { startSentinel } from '../../support/redis-sentinel.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { useCluster } from './cluster.setting.js';
import { usesEveryVerb } from './every-verb.js';
import { endOf, useRedis, type Setting } from './setting.js';
import { waiterFor, woken } from './waiting.js';

const KEY = 'order:42';
const REQUEST_TIMEOUT = 2_000;
const PASSWORD = 'secret';
const on = useCluster();
const single = useRedis({ port: 'free' });
const user = { username: 'shop', password: PASSWORD };

beforeEach(async () => {
  for (const setting of [single, on.setting]) await everywhere(setting, `>${PASSWORD}`);
});

/** Gives the user these rights or passwords on each server. */
async function everywhere(setting: Setting, ...rules: string[]): Promise<void> {
  const set = (redis: Redis) => redis.acl('SETUSER', 'shop', 'on', '~*', '&*', '+@all', 'resetpass', ...rules);
  if (setting === single) await set(single.redis);
  else await on.each(set, on.cluster.nodes);
}

interface Given {
  client: (RedisClient | NodeRedisClient) & EventEmitter;
  setting: Setting;
  keys: string[];
  proxies: TcpProxy[];
  /** The app has this password from now on. */
  renew(password: string): void;
}

const addressOf = ({ port }: { port?: number }): string => `127.0.0.1:${port}`;
const heldOpen = <T extends Redis | Cluster>(client: T, setting: Setting): T => {
  client.on('error', () => undefined);
  setting.finally(() => client.disconnect());
  return client;
};

async function ofIoredis(Client: typeof Redis, through: (connection: RedisOptions) => Promise<RedisOptions>): Promise<Given> {
  const proxy = await single.proxy();
  const client = heldOpen(new Client({ ...(await through(proxy.connection)), ...user }), single);
  return { client, setting: single, keys: [KEY], proxies: [proxy], renew: (password) => void Object.assign(client.options, { password }) };
}

const directly = async (connection: RedisOptions): Promise<RedisOptions> => connection;

async function bySentinel({ host, port }: RedisOptions): Promise<RedisOptions> {
  const sentinel = await startSentinel({ name: 'main', master: single.server });
  single.finally(() => sentinel.stop());
  const natMap = { [addressOf(single.server)]: { host: host!, port: port! } };
  return { sentinels: [{ host: '127.0.0.1', port: sentinel.port! }], name: 'main', natMap };
}

async function ofCluster(Client: typeof Cluster): Promise<Given> {
  const { cluster, setting } = on;
  const proxies = await Promise.all(cluster.nodes.map((node) => setting.proxy(node.connection)));
  const natMap = Object.fromEntries(cluster.nodes.map((node, index) => [addressOf(node), proxies[index]!.connection]));
  const redisOptions: ClusterOptions['redisOptions'] = { ...user, disconnectTimeout: 100 };
  const client = heldOpen(new Client(cluster.addresses, { natMap, redisOptions }), setting);
  return { client, setting, keys: on.keys(), proxies, renew: (password) => void Object.assign(client.options.redisOptions!, { password }) };
}

async function ofNodeRedis({ createClient }: typeof five): Promise<Given> {
  const proxy = await single.proxy();
  let { password } = user;
  const credentialsProvider = { type: 'async-credentials-provider', credentials: async () => ({ ...user, password }) } as const;
  const client = createClient({ socket: { ...proxy.connection, reconnectStrategy: () => 50 }, credentialsProvider });
  client.on('error', () => undefined);
  single.finally(() => client.destroy());
  await client.connect();
  return {
    client: client as NodeRedisClient & EventEmitter,
    setting: single,
    keys: [KEY],
    proxies: [proxy],
    renew: (other) => void (password = other),
  };
}

const LIKE_IOREDIS = [
  ['ioredis 5', Five, ClusterOfFive],
  ['ioredis 6', Redis, Cluster],
  ['iovalkey', Iovalkey, ClusterOfIovalkey],
] as unknown as [string, typeof Redis, typeof Cluster][];
const CLIENTS: [string, () => Promise<Given>][] = [
  ...LIKE_IOREDIS.flatMap(([name, One, Many]): [string, () => Promise<Given>][] => [
    [name, () => ofIoredis(One, directly)],
    [`${name} for Sentinel`, () => ofIoredis(One, bySentinel)],
    [`${name} for a Cluster`, () => ofCluster(Many)],
  ]),
  ['node-redis 5', () => ofNodeRedis(five)],
  ['node-redis 6', () => ofNodeRedis(six as unknown as typeof five)],
];

const connectionsOf = (proxies: TcpProxy[]) => proxies.map((proxy) => proxy.connections);
const listenersOf = (client: EventEmitter) => client.eventNames().map((event) => [event, client.listenerCount(event)]);

describe.each(CLIENTS)('a store that is given a client of %s', (_, make) => {
  async function opened() {
    const given = await make();
    const { client, setting } = given;
    const store = redisStore({ client, requestTimeout: REQUEST_TIMEOUT });
    const open = (used = store) => {
      const locks = new Locks(used, { logger: false, shutdownTimeout: 0 });
      setting.finally(() => locks.close());
      return locks;
    };
    return { ...given, open };
  }

  it('gives each kind of lock, also once it was closed, and leaves the client as it is, and no connection (G7)', async () => {
    const { open, client, proxies } = await opened();
    await eventually(() => ('status' in client ? client.status === 'ready' : true));
    const [before, connections] = [listenersOf(client), connectionsOf(proxies)];
    const other = redisStore({ client, requestTimeout: REQUEST_TIMEOUT });
    for (const round of [1, 2]) {
      const [locks, others] = [open(), open(other)];
      await usesEveryVerb(locks, others, `${KEY}:${round}`);
      expect(listenersOf(client)).toEqual(before);
      await Promise.all([locks.close(), others.close()]);
      await eventually(() => expect(connectionsOf(proxies)).toEqual(connections));
    }
  });

  it('whose connections go silent three times, loses no lease, and gives the next locks within two requestTimeouts for each (G4, G9)', async () => {
    const { open, keys, proxies } = await opened();
    const locks = open();
    const lost = jest.fn();
    locks.on('lost', lost);
    const leases = await Promise.all(keys.map((key) => locks.acquire(key, { keyTimeout: 30_000, waitTimeout: 10_000 })));
    for (let round = 0; round < 3; round++) {
      proxies.forEach((proxy) => proxy.silence());
      // Each connection to a node of a Cluster is found by itself.
      const patient = { ...woken, waitTimeout: 2 * proxies.length * REQUEST_TIMEOUT, retryInterval: 100 };
      for (const key of keys) await locks.using(`${key}:next`, () => undefined, patient);
      for (const lease of leases) await eventually(() => lease.renew());
    }
    for (const lease of leases) expect(await lease.release()).toBe(true);
    expect(lost).not.toHaveBeenCalled();
    await locks.close();
    // The connection of the app is left, which it asks nothing over.
    if (proxies.length === 1) await eventually(() => expect(connectionsOf(proxies)).toEqual([1]));
  });

  it('whose server breaks all connections, logs in with the password that the app has by then', async () => {
    const { open, keys, proxies, renew, setting } = await opened();
    const locks = open();
    for (const key of keys) await locks.using(key, () => undefined, woken);
    await everywhere(setting, '>renewed');
    renew('renewed');
    for (let round = 0; round < 2; round++) {
      proxies.forEach((proxy) => proxy.cut());
      for (const key of keys) await locks.using(key, () => undefined, { ...woken, retryInterval: 100 });
    }
    // The inbox logs in, too.
    const other = setting.overIoredis({ client: single === setting ? single.client() : setting.redis });
    const passOn = await waiterFor(setting, keys[0]!, locks, woken, other);
    await eventually(() => locks.store.mutex.wakeUps!.isOpen);
    await passOn();
  });
});

describe.each(CLIENTS.filter(([name]) => !/ for /.test(name)))('a store that is given a client of %s', (_, make) => {
  it('sends nothing over it, also when its server is killed and started again', async () => {
    const { client, setting } = await make();
    let heard = '';
    const watch = async () => {
      // By itself: ioredis takes what comes first for a reply.
      const monitor = connect(setting.server.port!, '127.0.0.1')
        .setEncoding('utf8')
        .on('data', (text: string) => void (heard += text));
      setting.finally(() => monitor.destroy());
      monitor.on('error', () => undefined).write('MONITOR\r\n');
      await eventually(() => heard.includes('+OK'));
    };
    const named = async () => {
      const name = ['CLIENT', 'SETNAME', 'of-the-app'] as const;
      await ('call' in client ? client.call(...name) : client.sendCommand(name as never)).catch(() => undefined);
      const line = String(await setting.redis.client('LIST'))
        .split('\n')
        .find((each) => each.includes('name=of-the-app'));
      expect(line).toBeDefined();
      return / addr=(\S+)/.exec(line!)![1]!;
    };
    const locks = setting.overIoredis({ client, requestTimeout: REQUEST_TIMEOUT });
    const other = setting.overIoredis({ client, requestTimeout: REQUEST_TIMEOUT });
    for (let round = 0; round < 2; round++) {
      const address = await eventually(named);
      heard = '';
      await watch();
      await usesEveryVerb(locks, other, KEY);
      expect(heard).toMatch(/evalsha/i);
      expect(heard).not.toContain(`${address}]`);
      if (round > 0) break;
      await setting.server.kill();
      await setting.server.restart();
      await everywhere(setting, `>${PASSWORD}`);
    }
  });
});

describe('a store gives each kind of lock where its client', () => {
  const ioredis = (options: RedisOptions = {}) => single.client({ ...options, ...single.server.connection });
  const nodeRedis = (options: five.RedisClientOptions = {}, { createClient } = five) => {
    const client = createClient({ ...options, socket: { ...single.server.connection } as never });
    client.on('error', () => undefined);
    single.finally(() => client.isOpen && client.destroy());
    return client;
  };
  const { BLOB_STRING, NUMBER, MAP } = five.RESP_TYPES;
  /** The client once this was done to it. */
  const after = async <T>(client: T, act: (client: T) => unknown): Promise<T> => {
    await act(client);
    return client;
  };
  const connected = <T extends { connect(): Promise<unknown> }>(client: T) => after(client, () => client.connect());
  const ended = (client: Redis) => {
    client.disconnect();
    return eventually(() => client.status === 'end');
  };
  const given = (options: RedisOptions) => async () => ioredis(options);
  const CASES: [string, () => Promise<unknown>][] = [
    ['connects again after each error', given({ reconnectOnError: () => true })],
    ['sends again after each error', given({ reconnectOnError: () => 2 })],
    ['retries for ever, as that of BullMQ', given({ maxRetriesPerRequest: null, enableReadyCheck: false })],
    ['has no offline queue', given({ enableOfflineQueue: false })],
    ['has a commandTimeout', given({ commandTimeout: 1 })],
    ['has a socketTimeout', given({ socketTimeout: 1 })],
    ['is not connected yet', given({ lazyConnect: true })],
    ['gathers commands', given({ enableAutoPipelining: true })],
    ['gets numbers as text', given({ stringNumbers: true })],
    ['speaks protocol 2', given({ protocol: 2 })],
    ['has a keyPrefix', given({ keyPrefix: 'app:' })],
    ['has a keyPrefix with a hash tag', given({ keyPrefix: '{app}:' })],
    ['reads from replicas', given({ readOnly: true })],
    ['has given up', () => after(ioredis({ retryStrategy: () => null }), ended)],
    ['subscribes', () => after(ioredis({ protocol: 2 }), (client) => client.subscribe('news'))],
    ['is inside MULTI', () => after(ioredis(), (client) => client.multi({ pipeline: false }))],
    ['is a proxy of one', async () => new Proxy(ioredis(), {})],
    ['is of node-redis, and is not connected', async () => nodeRedis()],
    ['is of node-redis, and is closed', async () => after(await connected(nodeRedis()), (client) => client.destroy())],
    ['is of node-redis, and has no offline queue', async () => nodeRedis({ disableOfflineQueue: true })],
    ['is of node-redis, and speaks RESP 3', async () => nodeRedis({ RESP: 3, commandOptions: { typeMapping: { [MAP]: Map } } })],
    [
      'is of node-redis, and gets Buffers',
      async () => nodeRedis({ commandOptions: { typeMapping: { [BLOB_STRING]: Buffer, [NUMBER]: String } } }),
    ],
    ['is of node-redis, and is a view with other types', async () => nodeRedis().withTypeMapping({ [BLOB_STRING]: Buffer })],
    ['is of node-redis, and has a pingInterval', async () => nodeRedis({ pingInterval: 1, socket: { socketTimeout: 5 } })],
    [
      'is of node-redis, and subscribes',
      async () => after(await connected(nodeRedis({ RESP: 2 })), (client) => client.subscribe('news', () => undefined)),
    ],
    ['is of node-redis 6, and has a keyPrefix', async () => nodeRedis({ keyPrefix: 'app:' } as object, six as unknown as typeof five)],
  ];

  it.each(CASES)('%s', async (_, make) => {
    const client = (await make()) as RedisClient;
    const [locks, others] = [1, 2].map(() => single.overIoredis({ client, requestTimeout: 5_000 })) as [Locks, Locks];
    await usesEveryVerb(locks, others, KEY);
    const lease = await locks.acquire('shown', woken);
    expect(await others.inspect('shown')).toMatchObject({ kind: 'mutex', holders: [{ owner: lease.owner }] });
    const found: string[] = [];
    for await (const { key } of others.list({ pattern: 'shown' })) found.push(key);
    expect(found).toEqual(['shown']);
    const keyPrefix = (client.options as RedisOptions | undefined)?.keyPrefix ?? '';
    expect(await single.redis.get(`${keyPrefix}shown`)).toBe(lease.owner);
    expect(await others.forceRelease('shown', { reason: 'stuck', grace: 0 })).toMatchObject({ outcome: 'forced' });
  });

  it('is closed by its app in the middle (G4)', async () => {
    const [client, other] = [ioredis(), await connected(nodeRedis())];
    await client.ping();
    for (const [given, close] of [
      [client, () => client.quit()],
      [other, () => other.close()],
    ] as const) {
      const locks = single.overIoredis({ client: given as never, requestTimeout: 5_000 });
      const lease = await locks.acquire(KEY, { keyTimeout: 6_000 });
      const end = endOf(lease);
      await close();
      await eventually(() => endOf(lease) > end + 100);
      await locks.using('other', () => undefined, woken);
      expect(await lease.release()).toBe(true);
    }
  });
});

it('the database of a store is the one that an app has selected over ioredis by the time of its first Locks, for all connections', async () => {
  const client = single.client();
  const store = redisStore({ client, requestTimeout: 5_000 });
  await client.select(5);
  const locks = new Locks(store, { logger: false });
  single.finally(() => locks.close());
  await client.select(6);
  const lease = await locks.acquire(KEY, woken);
  expect(await single.client({ db: 5 }).get(KEY)).toBe(lease.owner);
  expect(await lease.release()).toBe(true);
  const make = clientsOf({ client }, 5_000);
  const reconnecting = new Promise((resolve) => client.once('connect', () => resolve(make().options.db)));
  client.stream.destroy();
  expect(await reconnecting).toBe(6);
  await eventually(() => client.status === 'ready');
  await client.select(7);
  expect(make().options.db).toBe(6);
});

it('a store that is given a Cluster client logs in to a node by what is given for that node', async () => {
  const nodes = on.cluster.addresses.map((address) => ({ ...address, ...user }));
  for (const Client of [Cluster, ClusterOfFive as unknown as typeof Cluster]) {
    const client = new Client(nodes, { lazyConnect: true, redisOptions: { username: 'nobody', password: 'none' } });
    await on.setting.overIoredis({ client, requestTimeout: 5_000 }).using(on.keys()[0]!, () => undefined, woken);
  }
});

const evalsha = () => undefined;
const stub = (duplicate?: () => unknown): object => ({ evalsha, options: {}, duplicate });

it.each([
  ['cannot make a duplicate', () => stub()],
  ['throws where it is to make one', () => stub(() => fail('one connection is all you get'))],
  ['makes something else', () => stub(() => ({ evalsha }))],
  ['has no options', () => ({ evalsha, duplicate: () => undefined })],
  ['is like one of node-redis', () => ({ evalSha: evalsha, sendCommand: evalsha, destroy: evalsha, socketEpoch: 0 })],
])('a client that %s is a LockConfigError that says what to pass', (_, make) => {
  const store = () => redisStore({ client: make() as never });
  expect(store).toThrow(LockConfigError);
  expect(store).toThrow(/^redisStore: "client" cannot make a duplicate of itself: pass the client that it was made from, or .*\{ url \}/);
});

function fail(message: string): never {
  throw new Error(message);
}
