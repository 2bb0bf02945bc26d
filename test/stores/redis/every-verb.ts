import { LockTimeoutError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { endOf, outcomeOf } from './setting.js';

const patient = { keyTimeout: 10_000, waitTimeout: 15_000 };

/** Grants, excludes, queues, leaves the queue, renews, hands over and releases, over two stores. */
export async function usesEveryVerb(locks: Locks, others: Locks, key: string): Promise<void> {
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
