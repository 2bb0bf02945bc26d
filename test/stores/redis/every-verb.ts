import { LockTimeoutError, type Locks } from 'nestjs-distributed-lock/core';
import { waits } from '../../contract/candidates.js';
import { rejection } from '../../support/rejection.js';
import { endOf } from './setting.js';
import { woken } from './waiting.js';

const fair = { ...woken, fair: true };

/** Grants, excludes, queues, leaves the queue, renews, wakes, hands over and releases, over two stores: a mutex, a read/write lock, permits and a latch. */
export async function usesEveryVerb(locks: Locks, others: Locks, key: string): Promise<void> {
  const lost = jest.fn();
  for (const each of [locks, others]) each.on('lost', lost);
  await usesMutex(locks, others, key);
  await usesReadWriteLock(locks, others, `${key}:order`);
  await usesSemaphore(locks, others, `${key}:pool`);
  await usesLatch(locks, others, `${key}:latch`);
  expect(lost).not.toHaveBeenCalled();
}

async function usesMutex(locks: Locks, others: Locks, key: string): Promise<void> {
  const lease = await locks.acquire(key, woken);
  expect(await others.tryAcquire(key)).toBeNull();
  expect(await rejection(others.acquire(key, { fair: true, waitTimeout: 50 }))).toBeInstanceOf(LockTimeoutError);
  const found = waits(others);
  const queued = others.acquire(key, fair);
  await found;
  const end = endOf(lease);
  await lease.renew(2 * woken.keyTimeout);
  expect(endOf(lease)).toBeGreaterThan(end);
  expect(await lease.release()).toBe(true);
  const next = await queued;
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken!);
  const adopted = await locks.adopt(await next.handOver({ within: woken.keyTimeout }), woken);
  expect(adopted.fencingToken).toBeGreaterThan(next.fencingToken!);
  expect(await adopted.release()).toBe(true);
}

/** Readers and a writer, and a downgrade. */
async function usesReadWriteLock(locks: Locks, others: Locks, key: string): Promise<void> {
  const [mine, theirs] = [locks.readWriteLock(key), others.readWriteLock(key)];
  const reader = await mine.read.acquire(woken);
  const other = await theirs.read.acquire(woken);
  expect(other.fencingToken).toBe(reader.fencingToken);
  expect(await theirs.write.tryAcquire()).toBeNull();
  const end = endOf(reader);
  await reader.renew(2 * woken.keyTimeout);
  expect(endOf(reader)).toBeGreaterThan(end);
  const found = waits(others);
  const queued = theirs.write.acquire(fair);
  await found;
  expect(await other.release()).toBe(true);
  expect(await mine.read.tryAcquire({ reentrant: false })).toBeNull();
  expect(await reader.release()).toBe(true);
  const writer = await queued;
  expect(writer.fencingToken).toBeGreaterThan(reader.fencingToken!);
  await writer.release();
  const kept = await mine.write.using(async (lease) => {
    const inner = await mine.read.acquire(woken);
    expect(inner.fencingToken).toBe(lease.fencingToken);
    return inner;
  }, woken);
  await (await theirs.read.acquire(woken)).release();
  expect(await theirs.write.tryAcquire()).toBeNull();
  expect(await kept.release()).toBe(true);
}

/** The number of permits changes. */
async function usesSemaphore(locks: Locks, others: Locks, key: string): Promise<void> {
  const two = await locks.semaphore(key, { permits: 2, count: 2 }).acquire(woken);
  const found = waits(others);
  const one = others.semaphore(key, { permits: 2 }).acquire(woken);
  await found;
  expect(await others.semaphore(key, { permits: 2 }).tryAcquire()).toBeNull();
  const more = await locks.semaphore(key, { permits: 5, count: 2 }).acquire(woken);
  for (const lease of [two, more]) expect(await lease.release()).toBe(true);
  expect(await (await one).release()).toBe(true);
}

async function usesLatch(locks: Locks, others: Locks, key: string): Promise<void> {
  expect(await locks.countDownLatch(key).trySetCount(2)).toBe(true);
  const waiting = others.countDownLatch(key).await({ waitTimeout: woken.keyTimeout, retryInterval: woken.retryInterval });
  expect(await locks.countDownLatch(key).countDown()).toBe(1);
  expect(await others.countDownLatch(key).countDown()).toBe(0);
  await waiting;
  expect(await others.countDownLatch(key).getCount()).toBe(0);
}
