import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
} from '../../core/store/lease-driver.js';
import type { LeaseRequests } from './scripts/lease.requests.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** What all kinds of lock on Redis have in common: all but how a key is taken. */
export abstract class RedisLeaseDriver implements LeaseDriver {
  /** After so many milliseconds the scripts forget a queue that nobody asks for. */
  readonly queueEntryLifetime = 60_000;

  constructor(
    protected readonly requests: LeaseRequests,
    readonly wakeUps: RedisWakeUps,
  ) {}

  abstract acquire(request: AcquireRequest): Promise<AcquireReply>;

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return this.requests.renew(batch);
  }

  release(request: ReleaseRequest): Promise<'released' | 'lost'> {
    return this.requests.release(request);
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.requests.leave({ key, owner });
  }

  check(tenancy: Tenancy): Promise<CheckReply> {
    return this.requests.check(tenancy);
  }
}
