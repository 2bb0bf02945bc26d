import { now } from '../../core/util/clock.js';
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
import { keptBy, ownerOf } from '../../core/model/owner.js';
import type { MemoryWakeUps } from './memory.wakeups.js';
import type { SharedKey, SharedKind } from './shared-key.js';
import type { SharedKeys } from './shared-keys.js';

/** Most milliseconds that a queued waiter has to take what it is offered. */
const LONGEST_OFFER = 1000;
const ALL_OF_IT: Share = { count: Infinity, permits: Infinity, rank: 0 };

/** A kind of lock that several may hold, in the memory of one process; it answers as the Redis scripts do, step by step. */
export class MemorySharingDriver implements LeaseDriver {
  readonly placeLifetime = Infinity;
  readonly isShared = true;

  constructor(
    private readonly keys: SharedKeys,
    private readonly kind: SharedKind,
    readonly wakeUps: MemoryWakeUps,
  ) {}

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key: name, owner, ttl, tokens, queue, share = ALL_OF_IT } = request;
    const key = this.keys.open(name, this.kind);
    key.permits = share.permits;
    const isGuest = !queue && !key.queue.has(owner);
    if (key.endOf(owner) === undefined) {
      if (key.has(share.beside) && key.hasRoomFor(share.count, share.beside)) key.put(owner, share.count, now() + ttl);
      else key.queue.join(owner, share, Math.min(ttl, LONGEST_OFFER));
    }
    this.serve(key, owner);
    // Who does not stay holds up nobody.
    if (isGuest && key.queue.leave(owner)) this.serve(key);
    if (key.endOf(owner) !== undefined) {
      key.queue.leave(owner);
      key.take(owner, now() + ttl);
      this.keys.sweepLater();
      return { granted: true, token: this.keys.tokenOf(name, this.kind, share.count, tokens) };
    }
    const { holder, endsAt } = key.inTheWay(share.count === share.permits);
    const ahead = queue ? key.queue.ahead(owner) : 0;
    this.keys.forgetIdle(name);
    return { granted: false, remaining: Math.max(-1, endsAt - now()), holder: ownerOf(holder), ahead };
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return batch.map(async ({ key: name, owner, ttl }) => {
      const key = this.keys.find(name, this.kind);
      if (key?.endOf(owner) === undefined) return 'lost';
      key.prolong(owner, now() + ttl);
      return 'renewed';
    });
  }

  release({ key: name, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    const key = this.keys.find(name, this.kind);
    if (!key) return Promise.resolve('lost');
    key.queue.leave(owner);
    const wasHeld = key.isHeld;
    const count = key.drop(owner);
    if (count !== undefined && keepFor > 0) key.put(keptBy(owner), count, now() + keepFor);
    // Whoever waits for a key that has run out finds that by itself.
    if (wasHeld) this.serve(key);
    // Waiters know of a later end only.
    if (count !== undefined && keepFor > 0 && key.queue.head) this.wakeUps.wake(key.queue.head.owner, keepFor);
    this.keys.forgetIdle(name);
    return Promise.resolve(count !== undefined || key.has(keptBy(owner)) ? 'released' : 'lost');
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.release({ key, owner, keepFor: 0 });
  }

  check({ key: name, owner }: Tenancy): Promise<CheckReply> {
    const key = this.keys.find(name, this.kind);
    const endsAt = key?.endOf(owner);
    if (endsAt !== undefined) return Promise.resolve({ state: 'held', remaining: endsAt - now(), holder: owner, token: null });
    const other = key?.inTheWay(true);
    const remaining = other ? Math.max(0, other.endsAt - now()) : 0;
    const holding = { remaining, holder: (remaining > 0 && ownerOf(other?.holder)) || null, token: null };
    if (key?.queue.has(owner)) return Promise.resolve({ state: 'queued', ...holding });
    return Promise.resolve({ state: remaining > 0 ? 'taken' : 'free', ...holding });
  }

  /**
   * What is free is offered to those who wait, for a moment: whoever takes it asks again. The first one for whom it does not suffice holds up
   * those behind.
   */
  private serve(key: SharedKey, asker?: string): void {
    for (let head = key.queue.head; head && key.hasRoomFor(head.share.count); head = key.queue.head) {
      key.queue.leave(head.owner);
      key.offer(head.owner, head.share.count, now() + head.offer);
      if (head.owner !== asker) this.wakeUps.wake(head.owner);
    }
  }
}
