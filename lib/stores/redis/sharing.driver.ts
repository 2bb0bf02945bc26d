import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Share,
  Tenancy,
} from '../../core/store/lease-driver.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { holderOf, LeaseRequests, PLACE_LIFETIME, stateOf } from './lease.requests.js';
import { scripts } from './lua.scripts.js';
import type { RedisConnection } from './redis.connection.js';
import { listOf, millisecondsOf } from './redis.replies.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

const CHECK = new RedisScript(scripts.sharing.check);

/** Stands for `Infinity`, which no script counts up to. */
const WHOLE = 1_000_000_000;
const ALL_OF_IT: Share = { count: Infinity, permits: Infinity, rank: 0 };

/** A kind of lock that several hold at a time, on Redis: a sorted set of its holders; see lua/sharing/holders.lua. */
class RedisSharingDriver implements LeaseDriver {
  readonly placeLifetime = PLACE_LIFETIME;
  readonly isShared = true;

  /** @param side which of the two drivers of read/write locks. */
  constructor(
    private readonly requests: LeaseRequests,
    readonly wakeUps: RedisWakeUps,
    private readonly kind: 'read/write lock' | 'semaphore',
    private readonly side?: 'read' | 'write',
  ) {}

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { owner, ttl, tokens, queue, holding = [], share = ALL_OF_IT } = request;
    const { count, permits: all, rank, beside = '' } = share;
    const permits = Math.min(all, WHOLE);
    const needs = [`${Math.min(count, permits)} ${this.kind}`, ...holding];
    const place = queue
      ? this.wakeUps.placeOf(owner, ttl, needs)
      : this.wakeUps.places.knownPlaceOf(owner) || [owner, '', 1, ...needs].join('\n');
    // Readers are told the last write's token.
    const drawn = this.side === 'read' ? 0 : tokens;
    return this.requests.acquire(request, [ttl, drawn, permits, place, queue ? 1 : '', rank, beside]);
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return this.requests.renew(batch);
  }

  async release(request: ReleaseRequest): Promise<'released' | 'lost'> {
    return this.requests.release(request, this.wakeUps.places.knownPlaceOf(request.owner));
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.release({ key, owner, keepFor: 0 });
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const { requests } = this;
    const keysAndArgs = [key, requests.beside(key, 'queue'), owner, this.wakeUps.places.knownPlaceOf(owner)];
    const [state, remaining, holder] = listOf(await requests.ask(CHECK, 2, keysAndArgs));
    return {
      state: stateOf(state),
      remaining: millisecondsOf(remaining),
      holder: holderOf(holder ?? ''),
      token: null,
    };
  }
}

/** The drivers of one store for all locks that several hold at a time. They send together: a write lock given back goes before a read lock asked for. */
export function sharingDrivers(
  connection: RedisConnection,
  fenceTimeout: number,
  wakeUps: RedisWakeUps,
): Required<Pick<LockStore, 'readWriteLock' | 'semaphore'>> {
  const requests = new LeaseRequests(connection, scripts.sharing, fenceTimeout, wakeUps);
  return {
    readWriteLock: {
      read: new RedisSharingDriver(requests, wakeUps, 'read/write lock', 'read'),
      write: new RedisSharingDriver(requests, wakeUps, 'read/write lock', 'write'),
    },
    semaphore: new RedisSharingDriver(requests, wakeUps, 'semaphore'),
  };
}
