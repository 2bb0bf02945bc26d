// The page for apps that come from another library: the other one runs beside ours, on one server.
import { Redlock as Sesamecare } from '@sesamecare-oss/redlock';
import { Test } from '@nestjs/testing';
import { E_ALREADY_LOCKED, Mutex as LocalMutex, Semaphore as LocalSemaphore, tryAcquire } from 'async-mutex';
import type { RedisOptions } from 'ioredis';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { Mutex, Semaphore } from 'redis-semaphore';
import Redlock from 'redlock';
import { rejection } from '../support/rejection.js';
import { useRedis } from '../stores/redis/setting.js';
import { ReportService } from './shedlock.js';

const LONG = { keyTimeout: 60_000, waitTimeout: 60_000 };
const setting = useRedis();
const { client } = setting;
const locksOn = (options?: RedisOptions) => setting.locks({ client: client(options), requestTimeout: 5_000 });

describe('docs/migrating.md, from redis-semaphore', () => {
  const old = () => new Mutex(client(), 'order:42', { acquireAttemptsLimit: 1, lockTimeout: 60_000 });

  it('a Mutex and the mutex "mutex:…" here exclude each other, and neither ends the lock of the other', async () => {
    const [locks, mine, theirs] = [locksOn(), old(), old()];
    expect(await mine.tryAcquire()).toBe(true);
    expect(await locks.tryAcquire('mutex:order:42')).toBeNull();
    const waiting = locks.acquire('mutex:order:42', { ...LONG, retryInterval: 20 });
    await mine.release();
    const lease = await waiting;
    expect(await theirs.tryAcquire()).toBe(false);
    await theirs.release();
    expect(await lease.renew()).toBeUndefined();
    expect(await lease.release()).toBe(true);
    expect(await theirs.tryAcquire()).toBe(true);
    expect(await lease.release()).toBe(true);
    expect(await locks.tryAcquire('mutex:order:42')).toBeNull();
    await theirs.release();
  });

  it('a Semaphore and permits here do not share a key: ours is refused where the other is in use', async () => {
    const locks = locksOn();
    const permit = new Semaphore(client(), 'pool', 3, { lockTimeout: 60_000 });
    await permit.acquire();
    const error = await rejection(locks.semaphore('semaphore:pool', { permits: 3 }).tryAcquire());
    expect(error).toMatchObject({ name: 'StoreError', transient: false });
    expect(await locks.semaphore('pool', { permits: 3 }).tryAcquire()).not.toBeNull();
    await permit.release();
  });
});

describe('docs/migrating.md, from redlock', () => {
  it.each([
    ['redlock', Redlock],
    ['@sesamecare-oss/redlock', Sesamecare],
  ])('%s and a mutex of the same key exclude each other', async (_name, Other) => {
    const [locks, redlock] = [locksOn(), new Other([client()], { retryCount: 0 })];
    const lock = await redlock.acquire(['order:42'], 60_000);
    expect(await locks.tryAcquire('order:42')).toBeNull();
    const waiting = locks.acquire('order:42', { ...LONG, retryInterval: 20 });
    await lock.release();
    const lease = await waiting;
    expect(String(await rejection(redlock.acquire(['order:42'], 60_000)))).toMatch(/ExecutionError|unable to achieve a quorum/);
    expect(await lease.release()).toBe(true);
    await (await redlock.acquire(['order:42'], 60_000)).release();
  });

  it('@sesamecare-oss/redlock locks in database 0, or its own `db`, whichever its client uses; redlock in that of its client', async () => {
    const locks = locksOn({ db: 3 });
    const isFree = async () => {
      const lease = await locks.tryAcquire('order:42');
      await lease?.release();
      return lease !== null;
    };
    const found: boolean[] = [];
    for (const redlock of [new Sesamecare([client({ db: 3 })]), new Sesamecare([client()], { db: 3 }), new Redlock([client({ db: 3 })])]) {
      const lock = await redlock.acquire(['order:42'], 60_000);
      found.push(await isFree());
      await lock.release();
    }
    expect(found).toEqual([true, false, false]);
  });
});

describe('docs/migrating.md, from async-mutex', () => {
  it('a Mutex is for one process, and excludes no lock here; a lock here is for all', async () => {
    const mutexes = [new LocalMutex(), new LocalMutex()] as const;
    const locks = [locksOn(), locksOn()] as const;
    const release = await mutexes[0].acquire();
    expect(await rejection(tryAcquire(mutexes[0]).acquire())).toBe(E_ALREADY_LOCKED);
    expect(await tryAcquire(mutexes[1]).runExclusive(() => 'another process')).toBe('another process');
    const lease = await locks[1].tryAcquire('stock');
    expect([lease, await locks[0].tryAcquire('stock')]).toEqual([expect.anything(), null]);
    await lease!.release();
    release();
    const other = await mutexes[0].runExclusive(() => locks[0].using('stock', () => locks[1].tryAcquire('stock'), LONG));
    expect(other).toBeNull();
  });

  it('a weight is a count of permits', async () => {
    const [semaphore, locks] = [new LocalSemaphore(3), locksOn()];
    const permits = (count: number) => locks.semaphore('pool', { permits: 3, count });
    const [, release] = await semaphore.acquire(2);
    const lease = await permits(2).acquire();
    expect(await rejection(tryAcquire(semaphore).acquire(2))).toBe(E_ALREADY_LOCKED);
    expect([await permits(2).tryAcquire(), await permits(1).tryAcquire()]).toEqual([null, expect.anything()]);
    release();
    await lease.release();
  });
});

it('docs/migrating.md, from shedlock: one of two instances runs, the other skips, and the key is kept for minHold', async () => {
  const instance = async () => {
    const store = redisStore({ client: client(), requestTimeout: 5_000 });
    const imports = [DistributedLockModule.forRoot({ store, logger: false })];
    const app = await Test.createTestingModule({ imports, providers: [ReportService] }).compile();
    setting.finally(() => app.close());
    return app.get(ReportService);
  };
  const [one, other] = [await instance(), await instance()];
  expect((await Promise.all([one.report(), other.report()])).sort()).toEqual(['the report', undefined]);
  expect(await other.report()).toBeUndefined();
  expect(await client().pttl('report-locks')).toBeGreaterThan(800_000);
});
