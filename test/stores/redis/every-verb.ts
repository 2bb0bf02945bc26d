import { LockTimeoutError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { endOf, outcomeOf } from './setting.js';

const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };

/** Grants, excludes, queues, leaves the queue, renews, hands over and releases, over two stores: a mutex, a read/write lock and permits. */
export async function usesEveryVerb(locks: Locks, others: Locks, key: string): Promise<void> {
  await Promise.all([usesMutex(locks, others, key), sharesByEveryVerb(locks, others, `${key}:order`)]);
}

async function usesMutex(locks: Locks, others: Locks, key: string): Promise<void> {
  const lost = jest.fn();
  locks.on('lost', lost);
  const lease = await locks.acquire(key, { ...patient, keyTimeout: 1_200 });
  expect(await others.tryAcquire(key)).toBeNull();
  expect((await outcomeOf(others.acquire(key, { fair: true, waitTimeout: 50 }))).error).toBeInstanceOf(LockTimeoutError);
  const queued = others.acquire(key, { ...patient, fair: true });
  queued.catch(() => undefined);
  const end = endOf(lease);
  await eventually(() => endOf(lease) > end + 100, { within: 1_200 });
  await lease.renew();
  expect(await lease.release()).toBe(true);
  const next = await queued;
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken!);
  expect(await next.release()).toBe(true);
  expect(lost).not.toHaveBeenCalled();
}

/** The same of locks that several hold: readers and a writer, a downgrade, permits whose number changes. */
async function sharesByEveryVerb(locks: Locks, others: Locks, key: string): Promise<void> {
  const lost = jest.fn();
  for (const each of [locks, others]) each.on('lost', lost);
  const [mine, theirs] = [locks.readWriteLock(key), others.readWriteLock(key)];
  const reader = await mine.read.acquire({ ...patient, keyTimeout: 1_200 });
  const other = await theirs.read.acquire(patient);
  expect(other.fencingToken).toBe(reader.fencingToken);
  expect(await theirs.write.tryAcquire()).toBeNull();
  const end = endOf(reader);
  await eventually(() => endOf(reader) > end + 100, { within: 1_200 });
  await reader.renew();
  const queued = theirs.write.acquire({ ...patient, fair: true });
  expect(await other.release()).toBe(true);
  await eventually(async () => (await mine.read.tryAcquire().then(async (lease) => lease && (await lease.release()))) === null);
  expect(await reader.release()).toBe(true);
  const writer = await queued;
  expect(writer.fencingToken).toBeGreaterThan(reader.fencingToken!);
  await writer.release();
  const kept = await mine.write.using(async (lease) => {
    const inner = await mine.read.acquire(patient);
    expect(inner.fencingToken).toBe(lease.fencingToken);
    return inner;
  }, patient);
  await (await theirs.read.acquire(patient)).release();
  expect(await theirs.write.tryAcquire()).toBeNull();
  expect(await kept.release()).toBe(true);

  const pool = `${key}:pool`;
  const two = await locks.semaphore(pool, { permits: 2, count: 2 }).acquire(patient);
  const one = others.semaphore(pool, { permits: 2 }).acquire(patient);
  expect(await others.semaphore(pool, { permits: 2 }).tryAcquire()).toBeNull();
  const more = await locks.semaphore(pool, { permits: 5, count: 2 }).acquire(patient);
  for (const lease of [two, more]) expect(await lease.release()).toBe(true);
  expect(await (await one).release()).toBe(true);
  expect(lost).not.toHaveBeenCalled();
}
