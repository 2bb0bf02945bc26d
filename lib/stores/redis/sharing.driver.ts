import type { AcquireReply, AcquireRequest, Share } from '../../core/store/lease-driver.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { LeaseRequests, RedisLeaseDriver } from './scripts/lease.requests.js';
import type { RedisConnection } from './connection/redis.connection.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** Stands for `Infinity`, which no script counts up to. */
const WHOLE = 1_000_000_000;
const ALL_OF_IT: Share = { count: Infinity, permits: Infinity, rank: 0 };

/** A kind of lock that several hold at a time, on Redis: a sorted set of its holders; see lua/sharing/holders.lua. */
class RedisSharingDriver extends RedisLeaseDriver {
  readonly isShared = true;

  /** @param side which of the two drivers of read/write locks. */
  constructor(
    requests: LeaseRequests,
    wakeUps: RedisWakeUps,
    private readonly kind: 'read/write lock' | 'semaphore',
    private readonly side?: 'read' | 'write',
  ) {
    super(requests, wakeUps);
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { owner, ttl, tokens, floor = 0, queue, holding = [], share = ALL_OF_IT, yields } = request;
    const { count, permits: all, rank, beside = '' } = share;
    const permits = Math.min(all, WHOLE);
    const needs = [`${Math.min(count, permits)} ${this.kind}`, ...holding];
    const entry = queue ? this.wakeUps.entryOf(request, needs) : this.wakeUps.entries.known(owner) || [owner, '', 1, ...needs].join('\n');
    // Readers get the last write's token.
    const drawn = this.side === 'read' ? 0 : tokens;
    // What is released goes first.
    const yielded = yields === undefined ? undefined : this.requests.leave({ key: request.key, owner: yields });
    const args = [owner, ttl, drawn, floor, permits, entry, queue ? 1 : '', rank, beside];
    const reply = this.requests.acquire({ ...request, yields: undefined }, args);
    return yielded ? Promise.all([reply, yielded]).then(([acquired, released]) => ({ ...acquired, yielded: released })) : reply;
  }
}

/** The drivers of one store for all locks that several hold at a time. They send together: the release of a write lock goes before an acquire of a read lock. */
export function sharingDrivers(
  connection: RedisConnection,
  acked: RedisConnection,
  fenceTimeout: number,
  wakeUps: RedisWakeUps,
): Required<Pick<LockStore, 'readWriteLock' | 'semaphore'>> {
  const requests = new LeaseRequests(connection, acked, 'sharing', fenceTimeout, wakeUps.entries);
  return {
    readWriteLock: {
      read: new RedisSharingDriver(requests, wakeUps, 'read/write lock', 'read'),
      write: new RedisSharingDriver(requests, wakeUps, 'read/write lock', 'write'),
    },
    semaphore: new RedisSharingDriver(requests, wakeUps, 'semaphore'),
  };
}
