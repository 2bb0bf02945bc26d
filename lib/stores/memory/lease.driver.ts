import { keptBy, ownerOf } from '../../core/model/owner.js';
import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  ExtendReply,
  ExtendRequest,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Share,
  Tenancy,
} from '../../core/store/lease-driver.js';
import { now } from '../../core/util/clock.js';
import { LockRecord, type Hold, type LockKind } from './lock-record.js';
import type { MemoryRecords } from './memory.records.js';
import type { MemoryTokens } from './memory.tokens.js';
import type { MemoryWakeUps } from './memory.wakeups.js';
import { Queue } from './queue.js';

/** Most milliseconds that a waiter has to take what it is offered. */
const LONGEST_OFFER = 1000;
/** The permits of a key that are not counted. Sums of it are exact, which those of `Infinity` are not. */
export const ALL = 1_000_000_000;
const WHOLE: Share = { count: ALL, permits: ALL, rank: 0 };

/** The locks of one kind in the memory of one process. It answers as the Redis scripts do. */
export class MemoryLeaseDriver implements LeaseDriver {
  readonly isShared: boolean;
  readonly placeLifetime = Infinity;

  constructor(
    private readonly kind: LockKind,
    private readonly records: MemoryRecords,
    private readonly tokens: MemoryTokens,
    readonly wakeUps: MemoryWakeUps,
  ) {
    this.isShared = kind !== 'mutex';
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    try {
      return Promise.resolve(this.take(request));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  timeOf(token: number): Date {
    return new Date(token / 1000);
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    const time = now();
    return batch.map(({ key, owner, ttl }) => {
      const hold = this.records.find<LockRecord>(key, this.kind, time)?.prolong(owner, time + ttl);
      return Promise.resolve(hold ? 'renewed' : 'lost');
    });
  }

  extend({ key, owner, ttl, tokens }: ExtendRequest): Promise<ExtendReply> {
    const time = now();
    const record = this.records.find<LockRecord>(key, this.kind, time);
    const hold = record?.prolong(owner, time + ttl);
    if (!hold) return Promise.resolve('lost');
    return Promise.resolve(record?.queue?.head ? 'wanted' : { token: this.reserve(key, hold, tokens) });
  }

  release({ key, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    const time = now();
    const record = this.records.find<LockRecord>(key, this.kind, time);
    if (!record) return Promise.resolve('lost');
    record.queue?.leave(owner);
    const wasHeld = record.taken > 0;
    const hold = record.drop(owner);
    const isKept = hold !== undefined && keepFor > 0;
    if (isKept) {
      record.drop(keptBy(owner));
      record.put(keptBy(owner), hold.count, time + keepFor);
    }
    // A waiter of a key that has run out asks for it by itself.
    if (wasHeld) this.serve(record, time);
    // Waiters know of a later end only.
    if (isKept && record.queue?.head) this.wakeUps.wake(record.queue.head.owner, keepFor);
    if (record.isIdle) this.records.delete(key);
    return Promise.resolve(hold || record.holdOf(keptBy(owner)) ? 'released' : 'lost');
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.release({ key, owner, keepFor: 0 });
  }

  check({ key, owner }: Tenancy): Promise<CheckReply> {
    const time = now();
    const record = this.records.find<LockRecord>(key, this.kind, time);
    const own = record?.holdOf(owner);
    const hold = own ?? record?.inTheWay(true);
    const state = own ? 'held' : record?.queue?.ahead(owner) !== undefined ? 'queued' : hold ? 'taken' : 'free';
    const token = (this.isShared ? null : hold?.token) ?? null;
    return Promise.resolve({ state, remaining: hold ? hold.endsAt - time : 0, holder: ownerOf(hold?.owner), token });
  }

  private take({ key, owner, ttl, tokens, floor, queue, holding, share = WHOLE, yields }: AcquireRequest): AcquireReply {
    const time = now();
    const record = this.records.open<LockRecord>(key, this.kind, time) ?? this.records.add(key, new LockRecord(this.kind));
    const count = Math.min(share.count, ALL);
    record.permits = Math.min(share.permits, ALL);
    const yielded = yields === undefined ? undefined : record.drop(yields) ? 'released' : 'lost';
    let isGuest = false;
    if (!record.holdOf(owner)) {
      const own = (share.beside !== undefined && record.holdOf(share.beside)?.count) || 0;
      const isNext = own > 0 || !record.queue?.head;
      if (isNext && record.taken - own + count <= record.permits) record.put(owner, count, time + ttl);
      else if (queue || !isNext) {
        record.queue ??= new Queue();
        isGuest = record.queue.join({ owner, count, holding, offer: Math.min(ttl, LONGEST_OFFER) }, share.rank) && !queue;
      }
    }
    this.serve(record, time, owner);
    // An owner that does not queue holds nobody up.
    if (isGuest && record.queue?.leave(owner)) this.serve(record, time);
    const hold = record.prolong(owner, time + ttl);
    if (hold) {
      record.queue?.leave(owner);
      return { granted: true, token: this.reserve(key, hold, tokens, floor), yielded };
    }
    const other = record.inTheWay(count === record.permits);
    const ahead = (queue && record.queue?.ahead(owner)) || 0;
    if (record.isIdle) this.records.delete(key);
    return { granted: false, remaining: other ? other.endsAt - time : -1, holder: ownerOf(other?.owner), ahead, yielded };
  }

  /** Offers what is free to the waiters, for a moment: each takes it by asking again. One that wants more than is free holds up those behind. */
  private serve(record: LockRecord, time: number, asker?: string): void {
    for (let head = record.queue?.head; head && record.taken + head.count <= record.permits; head = record.queue?.head) {
      record.queue?.leave(head.owner);
      record.put(head.owner, head.count, time + head.offer);
      if (head.owner !== asker) this.wakeUps.wake(head.owner);
    }
  }

  private reserve(key: string, hold: Hold, count: number, floor?: number): number {
    const isRead = hold.count < ALL;
    const token = this.kind === 'read/write lock' ? this.tokens.ofReadWriteLock(key, isRead, count, floor) : this.tokens.next(count, floor);
    hold.token = token + count - 1;
    return token;
  }
}
