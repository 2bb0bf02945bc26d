import { LockConfigError, LockLostError, type Locks, StoreError, type Lease } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/free-port.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { deposit } from './account.js';
import { endOf, useRedis } from './setting.js';

const KEY = 'order:42';
const REQUEST_TIMEOUT = 2_000;
const once = { keyTimeout: 60_000, waitTimeout: 0 };
/** A replica on a busy machine may be too late for the first request. */
const patient = { keyTimeout: 60_000, waitTimeout: 60_000 };

const SYNC_AT_ONCE = ['--repl-diskless-sync-delay', '0'];
const setting = useRedis({ port: 'free', args: SYNC_AT_ONCE });
let replica: RedisServer;

beforeAll(async () => void (replica = await startRedis({ port: 'free', args: SYNC_AT_ONCE })));
afterAll(() => replica.stop());
beforeEach(async () => {
  const redis = replica.client();
  await redis.replicaof('127.0.0.1', setting.server.port!);
  await eventually(async () => /slave0:.*state=online/.test(await setting.redis.info('replication')));
  // The master calls it online before it has loaded what it was sent.
  await eventually(async () => /master_link_status:up/.test(await redis.info('replication')));
  redis.disconnect();
});
afterEach(() => replica.resume());

/** How many WAITs were sent since CONFIG RESETSTAT. */
async function waits(): Promise<number> {
  return Number(/cmdstat_wait:calls=(\d+)/.exec(await setting.redis.info('commandstats'))?.[1] ?? 0);
}

const open = (replicaAcks: number): Locks => setting.own(undefined, { requestTimeout: REQUEST_TIMEOUT, replicaAcks });

describe('a store with replicaAcks', () => {
  it('grants what all replicas have, and nothing else', async () => {
    const locks = open(1);
    const all = [locks.mutex(KEY), locks.semaphore('room', { permits: 2 }), locks.readWriteLock('page').write];
    for (const lock of all) await lock.using(() => undefined, patient);
    await replica.pause();
    for (const error of await Promise.all(all.map((lock) => rejection(lock.acquire(once))))) {
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true, message: expect.stringContaining('0 of 1 replica has it') });
    }
    // What was not acknowledged is released.
    for (const { key } of all) await eventually(async () => expect(await setting.keys()).not.toContain(key));
    await replica.resume();
    for (const lock of all) await lock.using(() => undefined, patient);
  });

  it('goes on waiting until the replicas are back', async () => {
    const locks = open(1);
    await replica.pause();
    await setting.redis.config('RESETSTAT');
    let isGranted = false;
    const call = locks.acquire(KEY, { ...patient, retryInterval: 100 }).finally(() => (isGranted = true));
    // It has asked in vain, and asks again.
    await eventually(async () => expect(await waits()).toBeGreaterThanOrEqual(2));
    expect(isGranted).toBe(false);
    await replica.resume();
    const [lease, copy] = [await call, replica.client()];
    await eventually(async () => expect(await copy.get(KEY)).toBe(lease.owner));
    expect(await lease.release()).toBe(true);
  });

  it('goes on waiting when its master becomes a replica, which ends each WAIT (G9)', async () => {
    const locks = open(1);
    await replica.pause();
    const call = locks.acquire(KEY, { ...patient, retryInterval: 100 });
    await eventually(async () => expect(await setting.redis.info('clients')).toContain('blocked_clients:1\r'));
    await setting.redis.replicaof('127.0.0.1', await freePort());
    await replica.resume();
    await setting.redis.replicaof('NO', 'ONE');
    expect(await (await call).release()).toBe(true);
  });

  it('reports contention as contention, with the replicas away too', async () => {
    const [locks, other] = [open(1), setting.own()];
    const lease = await other.acquire(KEY, once);
    await replica.pause();
    expect(await locks.tryAcquire(KEY, once)).toBeNull();
    await expect(locks.acquire(KEY, { ...once, waitTimeout: 300 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await lease.release();
  });

  it('counts a lease from the last renewal that the replicas have (G3)', async () => {
    const locks = open(1);
    const lease = await locks.acquire(KEY, { ...patient, keyTimeout: 5_000 });
    const end = endOf(lease);
    // A renewal has come through.
    await eventually(() => expect(endOf(lease)).toBeGreaterThan(end + 100));
    await replica.pause();
    const lost = new Promise<unknown>((resolve) => lease.signal.addEventListener('abort', () => resolve(lease.signal.reason)));
    expect(await lost).toBeInstanceOf(LockLostError);
    // The master itself has renewed it all the time.
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    await lease.release();
  });

  it('answers a thousand callers with few WAITs', async () => {
    const locks = open(1);
    await locks.using('warm-up', () => undefined, patient);
    await setting.redis.config('RESETSTAT');
    const leases = await Promise.all(Array.from({ length: 1000 }, (_, index) => locks.acquire(`${KEY}:${index}`, patient)));
    expect(await waits()).toBeLessThanOrEqual(4);
    await Promise.all(leases.map((lease) => lease.release()));
  });
});

it('a store without replicaAcks sends no WAIT and has no second connection', async () => {
  const locks = setting.own(setting.server.connection);
  await setting.redis.config('RESETSTAT');
  const before = Number(/connected_clients:(\d+)/.exec(await setting.redis.info('clients'))![1]);
  await locks.using(KEY, () => undefined, once);
  expect(await setting.redis.info('commandstats')).not.toContain('cmdstat_wait:');
  expect(Number(/connected_clients:(\d+)/.exec(await setting.redis.info('clients'))![1])).toBe(before + 1);
});

it('a release is not held up by the WAIT of another key', async () => {
  const locks = open(1);
  const lease = await locks.acquire(KEY, patient);
  await replica.pause();
  const other = locks.tryAcquire('other', once).catch((error: unknown) => error);
  const order: string[] = [];
  await Promise.all([other.then(() => order.push('other')), lease.release().then(() => order.push('release'))]);
  expect(order).toEqual(['release', 'other']);
});

it('a server without WAIT is a LockConfigError at the first grant, which names the option', async () => {
  const bare = await startRedis({ args: ['--rename-command', 'WAIT', ''] });
  setting.finally(() => bare.stop());
  const locks = setting.locks({ options: bare.connection, replicaAcks: 1 });
  const unknown = jest.fn();
  locks.on('unknown', unknown);
  const error = await rejection(locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: Infinity }));
  expect(error).toBeInstanceOf(LockConfigError);
  expect(error).toMatchObject({ message: expect.stringContaining('"replicaAcks"') });
  const redis = bare.client();
  await eventually(async () => expect(await redis.exists(KEY)).toBe(0));
  await locks.close();
  expect(unknown).not.toHaveBeenCalled();
});

it('a master that dies with what its replica does not have had granted it, without replicaAcks: two hold the key, and the fencing token keeps the first one out (G2)', async () => {
  const start = () => startRedis({ port: 'free', args: SYNC_AT_ONCE });
  const [master, next] = await Promise.all([start(), start()]);
  setting.finally(() => Promise.all([master.stop(), next.stop()]));
  const [old, redis] = [master.client(), next.client()];
  await redis.replicaof('127.0.0.1', master.port!);
  await eventually(async () => /slave0:.*state=online/.test(await old.info('replication')));
  // The replica keeps what it has, and gets nothing more.
  await redis.replicaof('127.0.0.1', await freePort());
  const open = ({ connection }: RedisServer): Locks => setting.own(connection, { requestTimeout: REQUEST_TIMEOUT });
  const first = await open(master).acquire(KEY, once);
  await master.kill();
  await redis.replicaof('NO', 'ONE');
  const second = await open(next).acquire(KEY, once);
  // Of the new master it knows nothing.
  first.assertHeld();
  const add = async ({ fencingToken }: Lease): Promise<string> => {
    const balance = await deposit.read(setting.redis);
    return deposit.write(setting.redis, balance + 1, fencingToken!);
  };
  expect([await add(second), await add(first)]).toEqual(['written', 'refused']);
  expect(await deposit.read(setting.redis)).toBe(1);
  await master.restart();
});

// ioredis drops the commands of a broken connection and never settles their promises.
it('a store with replicaAcks takes locks again after its connection broke before a reply', async () => {
  const proxy = await setting.proxy();
  const locks = setting.own(proxy.connection, { replicaAcks: 1, requestTimeout: 30_000 });
  await locks.using('warm-up', () => undefined);
  proxy.dropReplies();
  const call = locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: 0 });
  await eventually(() => proxy.lost.replies >= 2);
  await proxy.heal(); // it resets what has lost replies
  await expect(call).rejects.toMatchObject({ code: 'LOCK_STORE', transient: true });
  const lease = await locks.acquire(`${KEY}0`, { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 60_000 });
  expect(await lease.release()).toBe(true);
});

it('a store with replicaAcks replaces a connection that is silent', async () => {
  const [next, proxy] = [await startRedis({ port: 'free' }), await setting.proxy()];
  setting.finally(async () => {
    await setting.server.resume();
    await next.stop();
  });
  const locks = setting.own(proxy.connection, { requestTimeout: REQUEST_TIMEOUT, replicaAcks: 1 });
  await (await locks.acquire(KEY, patient)).release();
  proxy.silence();
  await (await locks.acquire(KEY, patient)).release();
  proxy.moveTo({ port: next.port! });
  await setting.server.pause();
  // That the new server has no replica is an answer.
  await eventually(async () => expect(String(await rejection(locks.acquire(KEY, once)))).toContain('0 of 1 replica has it'));
});
