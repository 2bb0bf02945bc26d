import { after, now } from '../../core/util/clock.js';
import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  ExtendReply,
  ExtendRequest,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
} from '../../core/store/lease-driver.js';
import { keptBy, ownerOf } from '../../core/model/owner.js';
import type { MemoryTokens } from './memory.tokens.js';
import type { MemoryWakeUps } from './memory.wakeups.js';
import { otherKind } from './shared-keys.js';

/** Most milliseconds that a queued waiter has to take the lock that it is offered. */
const LONGEST_OFFER = 1000;
/** Milliseconds between two looks for entries whose end has passed. */
const SWEEP = 1000;

interface Entry {
  /** See {@link keptBy}. */
  owner: string;
  endsAt: number;
  /** Of its last grant; an offer has none. */
  token: number | null;
}

interface Place {
  readonly owner: string;
  /** Milliseconds that an offer lasts. */
  readonly offer: number;
}

/** The mutex in the memory of one process; it answers as the Redis scripts do, step by step. */
export class MemoryMutexDriver implements LeaseDriver {
  readonly placeLifetime = Infinity;
  private readonly entries = new Map<string, Entry>();
  private readonly queues = new Map<string, Place[]>();
  private sweeper: NodeJS.Timeout | undefined;

  constructor(
    readonly wakeUps: MemoryWakeUps,
    private readonly tokens: MemoryTokens,
    /** What else a key is in use as. */
    private readonly otherKindOf: (key: string) => string | undefined,
  ) {}

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, owner, ttl, tokens, queue, yields } = request;
    const other = this.otherKindOf(key);
    if (other !== undefined) return Promise.reject(otherKind(key, other, 'mutex'));
    let entry = this.live(key);
    const yielded = yields === undefined ? undefined : entry?.owner === yields ? 'released' : 'lost';
    if (yielded === 'released') {
      this.entries.delete(key);
      entry = undefined;
    }
    if (!entry) {
      const head = this.queues.get(key)?.[0];
      if (head !== undefined && head.owner !== owner) entry = this.offer(key, head);
    }
    if (entry && entry.owner !== owner) {
      const ahead = queue ? this.join(key, { owner, offer: Math.min(ttl, LONGEST_OFFER) }) : 0;
      return Promise.resolve({ granted: false, remaining: entry.endsAt - now(), holder: ownerOf(entry.owner), ahead, yielded });
    }
    this.leaveQueue(key, owner);
    const token = this.tokens.next(tokens);
    // Of an offer that is taken the whole ttl begins; what is repeated brings no end nearer.
    const least = entry && entry.token !== null ? entry.endsAt : 0;
    this.put(key, { owner, endsAt: Math.max(least, now() + ttl), token: token + tokens - 1 });
    return Promise.resolve({ granted: true, token, yielded });
  }

  timeOf(token: number): Date {
    return new Date(token / 1000);
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return batch.map(async ({ key, owner, ttl }) => {
      const entry = this.live(key);
      if (entry?.owner !== owner) return 'lost';
      entry.endsAt = Math.max(entry.endsAt, now() + ttl);
      return 'renewed';
    });
  }

  extend({ key, owner, ttl, tokens }: ExtendRequest): Promise<ExtendReply> {
    const entry = this.live(key);
    if (entry?.owner !== owner) return Promise.resolve('lost');
    entry.endsAt = Math.max(entry.endsAt, now() + ttl);
    if (this.queues.has(key)) return Promise.resolve('wanted');
    const token = this.tokens.next(tokens);
    entry.token = token + tokens - 1;
    return Promise.resolve({ token });
  }

  release({ key, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    const entry = this.live(key);
    if (entry?.owner !== owner) return Promise.resolve(entry?.owner === keptBy(owner) ? 'released' : 'lost');
    if (keepFor > 0) this.keep(key, owner, keepFor);
    else this.handOver(key);
    return Promise.resolve('released');
  }

  leave({ key, owner }: Tenancy): Promise<void> {
    this.leaveQueue(key, owner);
    if (this.live(key)?.owner === owner) this.handOver(key);
    return Promise.resolve();
  }

  check({ key, owner }: Tenancy): Promise<CheckReply> {
    const entry = this.live(key);
    const remaining = entry ? entry.endsAt - now() : 0;
    const holding = { remaining, holder: ownerOf(entry?.owner), token: entry?.token ?? null };
    if (entry?.owner === owner) return Promise.resolve({ state: 'held', ...holding });
    if (this.queues.get(key)?.some((place) => place.owner === owner)) return Promise.resolve({ state: 'queued', ...holding });
    return Promise.resolve({ state: entry ? 'taken' : 'free', ...holding });
  }

  isInUse(key: string): boolean {
    return this.live(key) !== undefined || this.queues.has(key);
  }

  private live(key: string): Entry | undefined {
    const entry = this.entries.get(key);
    if (!entry || entry.endsAt > now()) return entry;
    this.entries.delete(key);
    return undefined;
  }

  private put(key: string, entry: Entry): Entry {
    this.entries.set(key, entry);
    this.sweeper ??= after(SWEEP, () => this.sweep()).unref();
    return entry;
  }

  /** The head of the queue gets the key for a moment: it takes it when it asks next, or the key is free again. */
  private offer(key: string, { owner, offer }: Place): Entry {
    this.leaveQueue(key, owner);
    this.wakeUps.wake(owner);
    return this.put(key, { owner, endsAt: now() + offer, token: null });
  }

  /** Waiters know of a later end only. */
  private keep(key: string, owner: string, keepFor: number): void {
    this.put(key, { owner: keptBy(owner), endsAt: now() + keepFor, token: null });
    const head = this.queues.get(key)?.[0];
    if (head !== undefined) this.wakeUps.wake(head.owner, keepFor);
  }

  private handOver(key: string): void {
    const head = this.queues.get(key)?.[0];
    if (head === undefined) this.entries.delete(key);
    else this.offer(key, head);
  }

  /** Returns how many waiters are ahead. */
  private join(key: string, place: Place): number {
    const queue = this.queues.get(key) ?? [];
    this.queues.set(key, queue);
    const ahead = queue.findIndex(({ owner }) => owner === place.owner);
    return ahead >= 0 ? ahead : queue.push(place) - 1;
  }

  private leaveQueue(key: string, owner: string): void {
    const queue = this.queues.get(key);
    const index = queue?.findIndex((place) => place.owner === owner) ?? -1;
    if (!queue || index < 0) return;
    queue.splice(index, 1);
    if (queue.length === 0) this.queues.delete(key);
  }

  /** Whom nobody asks after would stay for ever. */
  private sweep(): void {
    for (const key of [...this.entries.keys()]) this.live(key);
    this.sweeper = this.entries.size > 0 ? after(SWEEP, () => this.sweep()).unref() : undefined;
  }
}
