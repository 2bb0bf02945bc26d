import { Locks, StoreError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { Redis, RedisOptions } from 'ioredis';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import type { EndsArgs, EndsMessage } from './ends.child.js';
import { usesEveryVerb } from './every-verb.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const KEY = 'order:42';
const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };
const EVENTS = ['connect', 'ready', 'error', 'close', 'reconnecting', 'end', 'wait', 'message'];

const setting = useRedis();
const listeners = (client: Redis) => Object.fromEntries(EVENTS.map((event) => [event, client.listenerCount(event)]));
const connections = async () => ((await setting.redis.client('LIST')) as string).trim().split('\n').length;

describe('a client that is lent to a store', () => {
  it('stays open when the locks are closed, without a listener of ours (G7)', async () => {
    const client = setting.client();
    await client.ping();
    const before = listeners(client);
    const locks = setting.locks({ client });
    await Promise.all(Array.from({ length: 100 }, (_, i) => locks.using(`key:${i % 10}`, () => undefined, patient)));
    const idle = listeners(client);
    expect(idle.close! - before.close!).toBeLessThanOrEqual(1);
    expect({ ...idle, close: before.close }).toEqual(before);
    await locks.close();
    expect(listeners(client)).toEqual(before);
    expect(await client.ping()).toBe('PONG');
  });

  it('carries few listeners while hundreds wait for its connection, and none of them afterwards (G7)', async () => {
    const warned = jest.fn();
    process.on('warning', warned);
    setting.finally(() => process.off('warning', warned));
    const client = setting.client({ lazyConnect: true });
    const before = listeners(client);
    const locks = setting.locks({ client });
    const calls = Array.from({ length: 300 }, (_, i) => locks.using(`key:${i}`, () => undefined, patient));
    for (const [event, count] of Object.entries(listeners(client))) expect(count).toBeLessThanOrEqual(before[event]! + 3);
    await Promise.all(calls);
    await locks.close();
    expect(listeners(client)).toEqual(before);
    expect(warned).not.toHaveBeenCalled();
  });

  it('can be used by a store again after its close, within the same limits (G9)', async () => {
    const store = redisStore({ client: setting.client(), requestTimeout: 300 });
    const first = new Locks(store, { logger: false });
    await first.using(KEY, () => undefined, patient);
    await first.close();
    const second = new Locks(store, { logger: false });
    setting.finally(() => second.close());
    expect(await second.using(KEY, () => 'result', patient)).toBe('result');
    await setting.server.pause();
    setting.finally(() => setting.server.resume());
    const { error, took } = await outcomeOf(second.tryAcquire(KEY));
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(took).toBeLessThan(300 + SLACK);
  });

  const KINDS: [string, RedisOptions][] = [
    ['lazyConnect', { lazyConnect: true }],
    ['protocol 2', { protocol: 2 }],
    ['protocol 3', { protocol: 3 }],
    ['a keyPrefix', { keyPrefix: 'app:' }],
    ['a keyPrefix with a hash tag', { keyPrefix: '{app}:' }],
    ['another db', { db: 3 }],
    ['stringNumbers', { stringNumbers: true }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
    ['enableOfflineQueue: false', { enableOfflineQueue: false }],
    ['enableReadyCheck: false', { enableReadyCheck: false }],
    ['maxRetriesPerRequest: null', { maxRetriesPerRequest: null }],
  ];
  it.each(KINDS)('may be one with %s: it grants, excludes, queues, renews and releases', async (_, options) => {
    await usesEveryVerb(setting.locks({ client: setting.client(options) }), setting.locks({ client: setting.client(options) }), KEY);
  });

  it('puts its keyPrefix before every key of ours', async () => {
    const locks = setting.locks({ client: setting.client({ keyPrefix: 'app:' }) }, { namespace: 'shop:' });
    const lease = await locks.acquire(KEY, patient);
    expect(await setting.redis.get(`app:shop:${KEY}`)).toBe(lease.owner);
    for (const key of await setting.keys()) expect(key).toMatch(/^app:/);
  });

  it('is a StoreError at once when it was closed, though the wait has no end', async () => {
    const client = setting.client();
    const locks = setting.locks({ client });
    await locks.using(KEY, () => undefined);
    client.disconnect();
    await eventually(() => client.status === 'end');
    const { error, took } = await outcomeOf(locks.acquire(KEY, { waitTimeout: Infinity }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: false });
    expect(took).toBeLessThan(SLACK);
  });

  it('rejects those who wait for its connection at once when it is closed', async () => {
    // It takes the connection, and says nothing.
    const mute = createServer().listen(0, '127.0.0.1');
    await once(mute, 'listening');
    setting.finally(() => void mute.close());
    const { port } = mute.address() as AddressInfo;
    const client = setting.client({ path: undefined, port, host: '127.0.0.1', lazyConnect: true });
    const wait = outcomeOf(setting.locks({ client, requestTimeout: 10_000 }).acquire(KEY, { waitTimeout: Infinity }));
    await eventually(() => client.status === 'connect');
    client.disconnect();
    const { error, took } = await wait;
    expect(error).toMatchObject({ name: 'StoreError', transient: false });
    expect(took).toBeLessThan(SLACK);
  });

  it('lends its name to no error: without a listener of its owner nothing crashes, and an error is told by the call', async () => {
    const client = setting.client({ path: undefined, port: await freePort(), host: '127.0.0.1', lazyConnect: true });
    client.removeAllListeners('error');
    const { error } = await outcomeOf(setting.locks({ client, requestTimeout: 300 }).tryAcquire(KEY));
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect(String((error as StoreError).cause)).toContain('ECONNREFUSED');
    client.on('error', () => undefined);
  });
});

describe("a store's own client", () => {
  it('connects with the first use, once, and is gone after close (G7)', async () => {
    const before = await connections();
    const locks = setting.overIoredis({ options: setting.server.connection });
    locks.mutex(KEY);
    await setting.client().ping(); // whoever was before it is connected by now
    expect(await connections()).toBe(before + 1);
    await Promise.all(Array.from({ length: 50 }, (_, i) => locks.using(`key:${i}`, () => undefined, patient)));
    expect(await connections()).toBe(before + 2);
    await locks.close();
    await eventually(async () => (await connections()) === before + 1);
  });

  it('keeps its connection while nothing is asked', async () => {
    const locks = setting.overIoredis({ options: setting.server.connection, requestTimeout: 200 });
    await locks.using(KEY, () => undefined, patient);
    const others = new Set(((await setting.redis.client('LIST')) as string).match(/^id=\d+/gm));
    await new Promise((resolve) => setTimeout(resolve, 500)); // more than two requestTimeouts of nothing
    expect(new Set(((await setting.redis.client('LIST')) as string).match(/^id=\d+/gm))).toEqual(others);
    expect(await locks.using(KEY, () => 'result', patient)).toBe('result');
  });
});

describe('a process', () => {
  it.each<[EndsArgs['way'], string[]]>([
    ['never uses it', []],
    ['closes it', []],
    ['closes it with a lease that is held', []],
    ['closes it while it connects', []],
    ['closes it after it could not connect', ['StoreError']],
    ['disconnects its client, and never closes the store, with a lease that is held', []],
    ['loses the server and has no listener for errors', ['connected', 'StoreError']],
  ])('with a store that %s ends by itself', async (way, tells) => {
    const nobody = { host: '127.0.0.1', port: await freePort(), disconnectTimeout: 100 };
    const proxy = await setting.proxy();
    const connection = way.includes('could not connect') ? nobody : way.includes('loses') ? proxy.connection : setting.server.connection;
    const child = await setting.fork<EndsMessage>('ends.child.ts', { connection, way } satisfies EndsArgs);
    for (const what of tells) {
      expect(await child.waitFor('did', { within: 30_000 })).toEqual({ type: 'did', what });
      if (what !== 'connected') continue;
      proxy.refuse();
      proxy.cut();
      child.send({ type: 'go on' });
    }
    await eventually(() => !child.running, { within: 20_000 });
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(child.output()).toBe('');
  });
});
