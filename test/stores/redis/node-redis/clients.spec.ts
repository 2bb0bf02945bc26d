import { Locks, LockConfigError, StoreError } from 'nestjs-distributed-lock/core';
import { redisStore, type NodeRedisClient } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../../support/eventually.js';
import { freePort } from '../../../support/free-port.js';
import { clientName, nodeRedis } from '../../../support/redis-clients.js';
import { adapterOf } from '../../../../lib/stores/redis/node-redis/node-redis.adapter.js';
import type { RedisClient } from '../../../../lib/stores/redis/connection/redis.client.js';
import { usesEveryVerb } from '../every-verb.js';
import { outcomeOf, useRedis } from '../setting.js';

const KEY = 'order:42';
const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };
const EVENTS = ['connect', 'ready', 'error', 'end', 'reconnecting', 'topology-change', 'disconnect', 'node-error'];
const setting = useRedis();

// Of version 5, or by `--client node-redis-6` of that.
const { createClient, createClientPool, createCluster, createSentinel, RESP_TYPES } = nodeRedis;

describe('a client of node-redis that is lent to a store', () => {
  type Client = ReturnType<typeof createClient>;
  function client(options: object = {}): Client {
    const made: Client = createClient({ socket: { path: setting.server.path!, tls: false }, ...options });
    made.on('error', () => undefined);
    setting.finally(() => made.isOpen && made.destroy());
    return made;
  }
  const listeners = (one: Client) => Object.fromEntries(EVENTS.map((event) => [event, one.listenerCount(event)]));
  const connected = async (options?: object): Promise<Client> => {
    const made = client(options);
    await made.connect();
    return made;
  };

  it('stays open when the locks are closed, without a listener of ours (G7)', async () => {
    const lent = await connected();
    const before = listeners(lent);
    const stores = [1, 2, 3].map(() => setting.locks({ client: lent }));
    for (const locks of stores) {
      await Promise.all(Array.from({ length: 100 }, (_, i) => locks.using(`key:${i % 10}`, () => undefined, patient)));
    }
    for (const [event, count] of Object.entries(listeners(lent))) expect(count).toBeLessThanOrEqual(before[event]! + 1);
    for (const locks of stores) await locks.close();
    expect(listeners(lent)).toEqual(before);
    expect(await lent.ping()).toBe('PONG');
  });

  it('is connected with the first request if it is not yet, and may be connected by its owner meanwhile', async () => {
    const [mine, theirs] = [client(), client()];
    const before = listeners(mine);
    const [locks, others] = [setting.locks({ client: mine }), setting.locks({ client: theirs })];
    expect([mine.isOpen, theirs.isOpen]).toEqual([false, false]);
    await Promise.all(Array.from({ length: 50 }, (_, i) => locks.using(`key:${i}`, () => undefined, patient)));
    const connecting = theirs.connect();
    await others.using(KEY, () => undefined, patient);
    await connecting;
    await locks.close();
    expect(listeners(mine)).toEqual(before);
    expect(mine.isReady).toBe(true);
  });

  it('can be used by a store again after its close, within the same limits (G9)', async () => {
    const store = redisStore({ client: await connected(), requestTimeout: 2_000 });
    const first = new Locks(store, { logger: false });
    await first.using(KEY, () => undefined, patient);
    await first.close();
    const second = new Locks(store, { logger: false });
    setting.finally(() => second.close());
    expect(await second.using(KEY, () => 'result', patient)).toBe('result');
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const { error } = await outcomeOf(second.tryAcquire(KEY));
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
  });

  it.each<[string, object]>([
    ['RESP 2', { RESP: 2 }],
    ['RESP 3', { RESP: 3 }],
    ['another database', { database: 3 }],
    ['disableOfflineQueue', { disableOfflineQueue: true }],
    ['Buffers in place of text', { commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String } } }],
    ['commands that go first', { commandOptions: { asap: true } }],
    ['RESP 3 and maps', { RESP: 3, commandOptions: { typeMapping: { [RESP_TYPES.MAP]: Map } } }],
  ])('may be one with %s: it grants, excludes, queues, renews, releases and shows keys', async (_, options) => {
    const [locks, others] = [setting.locks({ client: await connected(options) }), setting.locks({ client: await connected(options) })];
    await usesEveryVerb(locks, others, KEY);
    const lease = await locks.acquire('shown', patient);
    expect(await others.inspect('shown')).toMatchObject({ kind: 'mutex', holders: [{ owner: lease.owner }] });
    const keys: string[] = [];
    for await (const { key } of others.list()) keys.push(key);
    expect(keys).toContain('shown');
    expect(await others.forceRelease('shown', { reason: 'stuck', grace: 0 })).toMatchObject({ outcome: 'forced' });
  });

  it('may be the view of one with other types', async () => {
    const lent = await connected();
    const view = lent.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }) as unknown as NodeRedisClient;
    await usesEveryVerb(setting.locks({ client: view }), setting.locks({ client: lent as NodeRedisClient }), KEY);
  });

  it('sends what is asked for in the order of the calls, a release before the acquire after it', async () => {
    const locks = setting.locks({ client: await connected() });
    for (let i = 0; i < 20; i++) {
      const lease = await locks.acquire(KEY, patient);
      const [answer, next] = await Promise.all([lease.release(), locks.tryAcquire(KEY)]);
      expect([answer, next?.key]).toEqual([true, KEY]);
      await next!.release();
    }
  });

  it('is a StoreError at once when it was closed, though the wait has no end, and works again when its owner opens it again', async () => {
    const lent = await connected();
    const locks = setting.locks({ client: lent });
    await locks.using(KEY, () => undefined);
    lent.destroy();
    const { error } = await outcomeOf(locks.acquire(KEY, { waitTimeout: Infinity }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: false });
    await lent.connect();
    expect(await locks.using(KEY, () => 'result', patient)).toBe('result');
  });

  it('that cannot connect is an outage, with its reason', async () => {
    const lent = client({ socket: { port: await freePort(), host: '127.0.0.1', reconnectStrategy: false } });
    const locks = setting.locks({ client: lent, requestTimeout: 2_000 });
    const { error } = await outcomeOf(locks.tryAcquire(KEY));
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(String((error as StoreError).cause)).toContain('ECONNREFUSED');
  });

  it('sends nothing in MULTI, and several requests in one write, in order, with their own errors', async () => {
    const lent = await connected();
    const locks = setting.locks({ client: lent });
    await locks.using(KEY, () => undefined);
    const pipeline = adapterOf(lent).pipeline();
    pipeline.eval("return redis.call('INCR', KEYS[1])", 1, 'count');
    pipeline.evalsha('0'.repeat(40), 1, 'count');
    pipeline.call('WAIT', 0, 10);
    const replies = await pipeline.exec();
    expect(replies!.map(([error, reply]) => error?.message.split(' ')[0] ?? reply)).toEqual([1, 'NOSCRIPT', 0]);
  });

  it('is no pool', async () => {
    const pool = createClientPool({ socket: { path: setting.server.path!, tls: false } });
    expect(() => redisStore({ client: pool as never })).toThrow(LockConfigError);
    expect(() => redisStore({ client: pool as never })).toThrow(/pool/);
  });

  it('is no cluster and no sentinel, for which ioredis is needed', () => {
    const cluster = createCluster({ rootNodes: [{}] });
    const sentinel = createSentinel({ name: 'shop', sentinelRootNodes: [{ host: '127.0.0.1', port: 26379 }] });
    expect(() => redisStore({ client: cluster as never })).toThrow('install ioredis and give redisStore({ cluster: [{ host, port }] })');
    expect(() => redisStore({ client: sentinel as never })).toThrow('install ioredis and give redisStore({ sentinels, name })');
  });

  it('whose locks are closed while the server hangs leaves no connection behind (G7)', async () => {
    const lent = await connected();
    const count = async () =>
      String(await setting.redis.call('CLIENT', 'LIST', 'TYPE', 'NORMAL'))
        .trim()
        .split('\n').length;
    const before = await count();
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const locks = setting.locks({ client: lent, requestTimeout: 2_000 });
    // It connects a duplicate.
    await locks.store.mutex.wakeUps!.open(() => undefined);
    expect((await outcomeOf(locks.acquire(KEY, { waitTimeout: 100 }))).error).toMatchObject({ name: 'StoreError', transient: true });
    await locks.close();
    await setting.server.resume();
    await eventually(async () => expect(await count()).toBe(before));
  });

  it('whose duplicate the server never answers says that, not what node-redis stumbles over when it is broken off', async () => {
    const lent = await connected();
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const errors: unknown[] = [];
    const [late, broken] = [100, 60_000].map((connectTimeout) => {
      const duplicate = adapterOf(lent).duplicate({ connectTimeout });
      return duplicate.on('error', (error) => errors.push(error));
    }) as [RedisClient, RedisClient];
    await expect(late.connect()).rejects.toThrow('The server did not answer within 100 ms.');
    const connecting = expect(broken.connect()).rejects.toThrow('The connection was broken off.');
    // It does nothing before there is a connection.
    await eventually(() => {
      broken.disconnect(true);
      return broken.status === 'end';
    });
    await connecting;
    expect(errors).toEqual([]);
  });

  if (clientName === 'node-redis-6') {
    it('puts its keyPrefix before every key of ours', async () => {
      const lent = await connected({ keyPrefix: 'app:' });
      const locks = setting.locks({ client: lent }, { namespace: 'shop:' });
      const lease = await locks.acquire(KEY, patient);
      expect(await setting.redis.get(`app:shop:${KEY}`)).toBe(lease.owner);
      for (const key of await setting.keys()) expect(key).toMatch(/^app:/);
      const [one, other] = [setting.locks({ client: lent }), setting.locks({ client: await connected({ keyPrefix: '{app}:' }) })];
      await usesEveryVerb(one, setting.locks({ client: await connected({ keyPrefix: 'app:' }) }), 'same');
      await other.using(KEY, () => undefined);
      expect((await setting.keys('{app}:*')).length).toBeGreaterThan(0);
    });
  }
});

const TOO_OLD = 'redisStore: this version of redis is too old: version 5.1.0 or later is needed.';

describe('what a store does not take for a client', () => {
  it.each<[string, object, RegExp | string]>([
    ['a client of redis 4', { evalSha: () => undefined, sendCommand: () => undefined, disconnect: () => undefined }, TOO_OLD],
    ['a client of redis 5.0', { evalSha: () => undefined, sendCommand: () => undefined, destroy: () => undefined }, TOO_OLD],
    ['anything else', { get: () => undefined }, /ioredis or redis/],
  ])('is %s', (_, client, message) => {
    expect(() => redisStore({ client: client as never })).toThrow(message);
  });

  it('is a client without its name', () => {
    const client = createClient();
    expect(() => redisStore(client as never)).toThrow('redisStore({ client })');
  });
});

it('is refused for good by a connection that the app subscribes with', async () => {
  // In RESP 2 a client that subscribes may ask for nothing else: this is final, and not an outage.
  const client = createClient({ socket: { path: setting.server.path!, tls: false }, RESP: 2 });
  client.on('error', () => undefined);
  setting.finally(() => client.destroy());
  await client.connect();
  await client.subscribe('news', () => undefined);
  const { error } = await outcomeOf(setting.locks({ client: client as NodeRedisClient }).acquire(KEY, { waitTimeout: Infinity }));
  expect(error).toMatchObject({ name: 'StoreError', transient: false });
});
