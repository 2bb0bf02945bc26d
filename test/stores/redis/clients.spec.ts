import { Redis, type RedisOptions } from 'ioredis';
import { type CountDownLatch, Locks, StoreError } from 'nestjs-distributed-lock/core';
import { type NodeRedisClient, type RedisClient, redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { rejection } from '../../../lib/testing/store/rejection.js';
import { makeCertificate } from '../../support/certificate.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { closeNodeRedis, nodeRedisClient } from '../../support/redis-clients.js';
import { startSentinel } from '../../support/redis-sentinel.js';
import type { RedisServer } from '../../support/redis-server.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import type { EndsArgs, EndsMessage, Way } from './ends.child.js';
import { usesEveryVerb } from './every-verb.js';
import { useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';
const EVENTS = ['connect', 'ready', 'error', 'close', 'reconnecting', 'end', 'wait', 'message', '-node'];

const certificate = makeCertificate();
const setting = useRedis({ port: 'free', args: certificate.args });
let sentinel: RedisServer;
let tlsPort: number;

beforeAll(async () => {
  sentinel = await startSentinel({ name: 'main', master: setting.server });
  tlsPort = await freePort();
  await setting.redis.config('SET', 'tls-port', tlsPort);
});
afterAll(async () => {
  await sentinel.stop();
  certificate.remove();
});

const listeners = (client: Redis) => Object.fromEntries(EVENTS.map((event) => [event, client.listenerCount(event)]));
const connections = async () => new Set(((await setting.redis.client('LIST')) as string).match(/^id=\d+/gm));
const pausedServer = async () => {
  await setting.server.pause();
  setting.finally(() => setting.server.resume());
};

describe('a store', () => {
  const sentinels = () => [{ host: '127.0.0.1', port: sentinel.port! }];
  const tls = () => ({ host: '127.0.0.1', port: tlsPort, tls: { ca: certificate.ca } });
  const CLIENTS: [string, RedisOptions][] = [
    ['no options', {}],
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
  // A Cluster has a file of its own: cluster.spec.ts.
  const FORMS: [string, () => RedisStoreOptions][] = [
    ...CLIENTS.map(([what, options]): [string, () => RedisStoreOptions] => [
      `a client with ${what}`,
      () => ({ client: setting.client(options) }),
    ]),
    ['a client over TLS', () => ({ client: setting.client(tls()) })],
    ['a url', () => ({ url: `redis://127.0.0.1:${setting.server.port}` })],
    ['a url with a db', () => ({ url: `redis://127.0.0.1:${setting.server.port}/5` })],
    ['options', () => ({ options: { host: '127.0.0.1', port: setting.server.port } })],
    ['options of TLS', () => ({ options: tls() })],
    ['sentinels', () => ({ sentinels: sentinels(), name: 'main' })],
    ['sentinels and options', () => ({ sentinels: sentinels(), name: 'main', options: { db: 2 } })],
  ];

  it.each(FORMS)('made with %s grants, excludes, queues, renews, wakes and releases', async (_, form) => {
    await usesEveryVerb(setting.locks(form()), setting.locks(form()), KEY);
  });

  it('made with sentinels is not held up by one that accepts connections and answers nothing', async () => {
    const hung = await startSentinel({ name: 'main', master: setting.server });
    setting.finally(() => hung.stop());
    await hung.pause();
    const both = [{ host: '127.0.0.1', port: hung.port! }, ...sentinels()];
    const locks = setting.overIoredis({ sentinels: both, name: 'main', requestTimeout: 2_000 });
    expect(await (await locks.acquire(KEY, woken)).release()).toBe(true);
  });
});

describe('a client that is lent to a store', () => {
  it('stays open when the locks are closed, without a listener of ours (G7)', async () => {
    const client = setting.client();
    await client.ping();
    const before = listeners(client);
    const locks = setting.locks({ client });
    await Promise.all(Array.from({ length: 100 }, (_, i) => locks.using(`key:${i % 10}`, () => undefined, woken)));
    const idle = listeners(client);
    expect(idle.close! - before.close!).toBeLessThanOrEqual(1);
    expect({ ...idle, close: before.close }).toEqual(before);
    await locks.close();
    expect(listeners(client)).toEqual(before);
    expect(await client.ping()).toBe('PONG');
  });

  it('gives up an inbox whose sentinel hangs, and polls', async () => {
    const hung = await startSentinel({ name: 'main', master: setting.server });
    const client = new Redis({ sentinels: [{ host: '127.0.0.1', port: hung.port! }], name: 'main' });
    setting.finally(async () => {
      client.disconnect();
      await hung.stop();
    });
    await client.ping();
    await hung.pause();
    const { wakeUps } = setting.overIoredis({ client, requestTimeout: 2_000 }).store.mutex;
    await wakeUps!.open(() => undefined);
    expect(wakeUps!.state).toBe('interrupted');
  });

  it('has no listener of ours left where a release, or the end of a wait for a latch, is repeated when the locks are closed (G7)', async () => {
    const proxy = await setting.proxy();
    const client = setting.client(proxy.connection);
    await client.ping();
    const before = listeners(client);
    const locks = setting.locks({ client, requestTimeout: 2_000 });
    await locks.acquire('key', woken);
    const latch = locks.countDownLatch('latch');
    await latch.trySetCount(1);
    const waiting = rejection(latch.await({ waitTimeout: 300_000, retryInterval: 300_000 }));
    const waiters = async () => (await setting.redis.hkeys('latch')).filter((field) => field.startsWith('waiter:'));
    await eventually(async () => (await waiters()).length === 1);
    proxy.blackhole();
    await locks.close();
    await waiting;
    expect(await setting.redis.exists('key')).toBe(1);
    await proxy.heal();
    await eventually(async () => (await setting.redis.exists('key')) === 0 && (await waiters()).length === 0);
    await eventually(() => expect(listeners(client)).toEqual(before));
  });

  it('has few listeners while hundreds wait for its connection, and none of them afterwards (G7)', async () => {
    const warned = jest.fn();
    process.on('warning', warned);
    setting.finally(() => process.off('warning', warned));
    const client = setting.client({ lazyConnect: true });
    const before = listeners(client);
    const locks = setting.locks({ client, requestTimeout: 30_000 });
    const calls = Array.from({ length: 300 }, (_, i) => locks.using(`key:${i}`, () => undefined, woken));
    for (const [event, count] of Object.entries(listeners(client))) expect(count).toBeLessThanOrEqual(before[event]! + 3);
    await Promise.all(calls);
    await locks.close();
    expect(listeners(client)).toEqual(before);
    expect(warned).not.toHaveBeenCalled();
  });

  it('can be used by a store again after its close, within the same limits (G9)', async () => {
    const store = redisStore({ client: setting.client(), requestTimeout: 2_000 });
    const first = new Locks(store, { logger: false });
    await first.using(KEY, () => undefined, woken);
    await first.close();
    const second = new Locks(store, { logger: false });
    setting.finally(() => second.close());
    expect(await second.using(KEY, () => 'result', woken)).toBe('result');
    await pausedServer();
    expect(await rejection(second.tryAcquire(KEY))).toMatchObject({ name: 'StoreError', transient: true });
  });

  it('puts its keyPrefix before every key of ours', async () => {
    const locks = setting.locks({ client: setting.client({ keyPrefix: 'app:' }) }, { namespace: 'shop:' });
    const lease = await locks.acquire(KEY, woken);
    expect(await setting.redis.get(`app:shop:${KEY}`)).toBe(lease.owner);
    for (const key of await setting.keys()) expect(key).toMatch(/^app:/);
  });

  it('is a StoreError when it was closed, though the wait has no end', async () => {
    const client = setting.client();
    const locks = setting.locks({ client });
    await locks.using(KEY, () => undefined);
    client.disconnect();
    await eventually(() => client.status === 'end');
    const error = await rejection(locks.acquire(KEY, { waitTimeout: Infinity }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: false });
  });

  it.each<[string, (proxy: TcpProxy) => [client: RedisClient | NodeRedisClient, end: () => void, again: () => Promise<unknown>]]>([
    [
      'of ioredis for Sentinel',
      () => {
        const client = new Redis({ sentinels: [{ host: '127.0.0.1', port: sentinel.port! }], name: 'main' });
        setting.finally(() => client.disconnect());
        // As its failoverDetector does when it hears of a failover.
        const end = (): void => void client.once('connecting', () => client.disconnect(true)).disconnect(true);
        return [client, end, () => client.connect()];
      },
    ],
    [
      'of ioredis that gives up',
      (proxy) => {
        const client = setting.client({ ...proxy.connection, retryStrategy: (times) => (times > 1 ? null : 50) });
        return [client, () => (proxy.refuse(), proxy.cut()), () => client.connect()];
      },
    ],
    [
      'of node-redis that gives up',
      (proxy) => {
        const client = nodeRedisClient(proxy.connection, {
          socket: { ...proxy.connection, reconnectStrategy: (tries) => (tries > 1 ? false : 50) },
        });
        setting.finally(() => closeNodeRedis(client));
        return [client, () => (proxy.refuse(), proxy.cut()), () => client.connect()];
      },
    ],
  ])('%s and has ended by itself is an outage until it is connected, and one error says so', async (_, make) => {
    const proxy = await setting.proxy();
    const [client, end, again] = make(proxy);
    const logger = { warn: jest.fn(), error: jest.fn() };
    const locks = setting.overIoredis({ client, requestTimeout: 2_000 }, { logger });
    await locks.using(KEY, () => undefined);
    end();
    await eventually(() => logger.error.mock.calls.length > 0);
    const start = performance.now();
    const error = await rejection(locks.tryAcquire(KEY));
    expect(error).toMatchObject({ transient: true, message: expect.stringContaining('has ended by itself') });
    expect(performance.now() - start).toBeGreaterThanOrEqual(2_000 - 5);
    expect(await locks.health()).toMatchObject({ isUp: false });
    const waiting = locks.using(KEY, () => 'done', { waitTimeout: 60_000 });
    await proxy.heal();
    await again();
    expect(await waiting).toBe('done');
    expect(logger.error.mock.calls).toEqual([[expect.stringContaining('call its connect()')]]);
  });

  it('sends nothing again whose caller has been rejected, when it is connected again', async () => {
    const proxy = await setting.proxy();
    const client = setting.client(proxy.connection);
    const [locks, other] = [setting.locks({ client, requestTimeout: 2_000 }), setting.own()];
    const [latch, own] = [other, locks].map((each) => each.countDownLatch('latch')) as [CountDownLatch, CountDownLatch];
    await latch.trySetCount(3);
    await own.countDown(); // the server knows the script from now on
    proxy.dropRequests();
    const error = await rejection(own.countDown({ waitTimeout: 0 }));
    expect(error).toMatchObject({ transient: true });
    // It goes the same way as a command that is sent again.
    const ping = client.ping();
    await proxy.heal();
    expect(await ping).toBe('PONG');
    expect(await latch.getCount()).toBe(2);
  });

  it('rejects callers that wait for its connection when it is closed', async () => {
    // It takes the connection, and says nothing.
    const mute = createServer().listen(0, '127.0.0.1');
    await once(mute, 'listening');
    setting.finally(() => void mute.close());
    const { port } = mute.address() as AddressInfo;
    const client = setting.client({ path: undefined, port, host: '127.0.0.1', lazyConnect: true });
    const wait = rejection(setting.locks({ client, requestTimeout: 300_000 }).acquire(KEY, { waitTimeout: Infinity }));
    await eventually(() => client.status === 'connect');
    client.disconnect();
    expect(await wait).toMatchObject({ name: 'StoreError', transient: false });
  });

  it('needs no listener for errors: nothing crashes, and the call rejects', async () => {
    const client = setting.client({ path: undefined, port: await freePort(), host: '127.0.0.1', lazyConnect: true });
    client.removeAllListeners('error');
    const error = await rejection(setting.locks({ client, requestTimeout: 2_000 }).tryAcquire(KEY));
    expect(error).toMatchObject({ name: 'StoreError', transient: true });
    expect((error as StoreError).message).toContain('not connected within 2000 ms: connect ECONNREFUSED 127.0.0.1:');
    client.on('error', () => undefined);
  });

  it('counts as ready where it has no status, as stand-ins for tests have none', async () => {
    const client = setting.client();
    await client.ping();
    const silent = new Proxy(client, {
      get(target, name) {
        if (name === 'status') return undefined;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    expect(await setting.locks({ client: silent }).using('key', () => 'done')).toBe('done');
  });
});

describe("a store's own client", () => {
  it('connects with the first use, once, keeps its connection while nothing is asked, and is gone after close (G7)', async () => {
    const before = await connections();
    const locks = setting.overIoredis({ options: setting.server.connection, requestTimeout: 2_000 });
    locks.mutex(KEY);
    await setting.client().ping(); // what connected before it is listed by now
    expect((await connections()).size).toBe(before.size + 1);
    await Promise.all(Array.from({ length: 50 }, (_, i) => locks.using(`key:${i}`, () => undefined, woken)));
    const open = await connections();
    expect(open.size).toBe(before.size + 2);
    await staysTrue(async () => expect(await connections()).toEqual(open), 2_500); // more than a requestTimeout
    await locks.close();
    await eventually(async () => (await connections()).size === before.size + 1);
  });
});

describe('requestTimeout', () => {
  it('is also how long connecting may take', async () => {
    const locks = setting.own({ host: '127.0.0.1', port: await freePort() }, { requestTimeout: 2_000 });
    const error = await rejection(locks.tryAcquire(KEY));
    expect(error).toMatchObject({ name: 'StoreError', transient: true, message: expect.stringContaining('not connected') });
  });
});

describe('a process', () => {
  it.each<[string, Way[], string[]]>([
    [
      'a store that it never uses, closes, closes with a lease that is held, and closes while it connects',
      ['never uses it', 'closes it', 'closes it with a lease that is held', 'closes it while it connects'],
      [],
    ],
    ['a store that it closes after it could not connect', ['closes it after it could not connect'], ['StoreError']],
    [
      'a client that it disconnects, telemetry that throws, and an app that does not start',
      [
        'disconnects its client, and never closes the store, with a lease that is held',
        'disconnects its clients, and never closes the stores, after leases of theirs were renewed',
        'has telemetry that throws',
        'is an app whose boot is refused',
      ],
      ['no telemetry', 'LockConfigError'],
    ],
    ['a server that goes away', ['loses the server and has no listener for errors'], ['connected', 'StoreError']],
  ])('with %s ends by itself', async (_, way, said) => {
    const nobody = { host: '127.0.0.1', port: await freePort() };
    const proxy = await setting.proxy();
    const isRefused = way[0]!.includes('could not connect');
    const child = await setting.fork<EndsMessage>('ends.child.ts', {
      connection: isRefused ? nobody : proxy.connection,
      way,
    } satisfies EndsArgs);
    for (const what of said) {
      expect(await child.waitFor('did')).toEqual({ type: 'did', what });
      if (what !== 'connected') continue;
      proxy.refuse();
      proxy.cut();
      child.send({ type: 'go on' });
    }
    await eventually(() => !child.running);
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(child.output()).toBe('');
  });
});
