import type { LeaseDriver, Share } from '../../core/store/lease-driver.js';
import type { LockStore } from '../../core/store/lock-store.js';
import type { RedisConnection } from './connection/redis.connection.js';
import { LeaseRequests } from './scripts/lease.requests.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** Stands for `Infinity`, which no script counts up to. */
const WHOLE = 1_000_000_000;
const ALL_OF_IT: Share = { count: Infinity, permits: Infinity, rank: 0 };

/**
 * The drivers of one store for all locks that several hold at a time, each a sorted set of its holders; see lua/sharing/holders.lua. They send together:
 * the release of a write lock goes before an acquire of a read lock.
 */
export function sharingDrivers(
  connection: RedisConnection,
  acked: RedisConnection,
  fenceTimeout: number,
  wakeUps: RedisWakeUps,
): Required<Pick<LockStore, 'readWriteLock' | 'semaphore'>> {
  const requests = new LeaseRequests(connection, acked, 'sharing', fenceTimeout, wakeUps);
  const driver = (kind: 'read/write lock' | 'semaphore', side?: 'read' | 'write'): LeaseDriver => ({
    ...requests.verbs,
    isShared: true,
    acquire(request) {
      const { key, owner, ttl, tokens, floor = 0, queue, holding = [], share = ALL_OF_IT, yields } = request;
      const { count, permits: all, rank, beside = '' } = share;
      const permits = Math.min(all, WHOLE);
      const needs = [`${Math.min(count, permits)} ${kind}`, ...holding];
      const entry = queue ? wakeUps.entryOf(request, needs) : wakeUps.entries.known(owner) || [owner, '', 1, ...needs].join('\n');
      // Readers get the last write's token.
      const drawn = side === 'read' ? 0 : tokens;
      // What is released goes first.
      const yielded = yields === undefined ? undefined : requests.leave({ key, owner: yields });
      const args = [owner, ttl, drawn, floor, permits, entry, queue ? 1 : '', rank, beside];
      const reply = requests.acquire({ ...request, yields: undefined }, args);
      return yielded ? Promise.all([reply, yielded]).then(([acquired, released]) => ({ ...acquired, yielded: released })) : reply;
    },
  });
  return {
    readWriteLock: { read: driver('read/write lock', 'read'), write: driver('read/write lock', 'write') },
    semaphore: driver('semaphore'),
  };
}
