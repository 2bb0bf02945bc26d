import {
  LockConfigError,
  type AcquireReply,
  type AcquireRequest,
  type CheckReply,
  type LeaseDriver,
  type LockStore,
  type ReleaseRequest,
  type RenewRequest,
  type Share,
  type Tenancy,
} from 'nestjs-distributed-lock/core';
import { PlainLatchDriver, step, type PlainLatch } from './plain-latches.js';

type Kind = 'mutex' | 'read/write lock' | 'semaphore';

interface Hold {
  readonly count: number;
  endsAt: number;
  state: 'offered' | 'held' | 'kept';
}

interface Place {
  readonly owner: string;
  readonly share: Share;
  /** Milliseconds that an offer lasts. */
  readonly offer: number;
  endsAt: number;
}

const WHOLE: Share = { count: Infinity, permits: Infinity, rank: 0 };
const LONGEST_OFFER = 1_000;
const PLACE_LIFETIME = 5_000;

/** Who has how much of one key, and who waits for it. */
class PlainKey {
  permits = Infinity;
  readonly holds = new Map<string, Hold>();
  queue: Place[] = [];

  constructor(readonly kind: Kind) {}

  expire(time: number): void {
    for (const [owner, { endsAt }] of this.holds) if (endsAt <= time) this.holds.delete(owner);
    this.queue = this.queue.filter(({ endsAt }) => endsAt > time);
  }

  hasRoomFor(count: number, beside?: string): boolean {
    let taken = 0;
    for (const [owner, hold] of this.holds) if (owner !== beside) taken += hold.count;
    return count === Infinity ? this.holds.size === 0 : taken < Infinity && taken + count <= this.permits;
  }

  join({ owner, share = WHOLE, ttl }: AcquireRequest, time: number): void {
    const endsAt = time + PLACE_LIFETIME;
    const place = this.queue.find((other) => other.owner === owner);
    if (place) place.endsAt = endsAt;
    else this.queue.push({ owner, share, offer: Math.min(ttl, LONGEST_OFFER), endsAt });
    this.queue.sort((a, b) => a.share.rank - b.share.rank);
  }

  leave(owner: string): void {
    this.queue = this.queue.filter((place) => place.owner !== owner);
  }

  /** Offers what is free to those who wait, in their order. */
  serve(time: number): void {
    for (let head = this.queue[0]; head && this.hasRoomFor(head.share.count); head = this.queue[0]) {
      this.leave(head.owner);
      this.holds.set(head.owner, { count: head.share.count, endsAt: time + head.offer, state: 'offered' });
    }
  }

  /** The first whose end lets others in, or the last. */
  inTheWay(isLast: boolean): [owner: string, hold: Hold] | undefined {
    return [...this.holds].sort(([, a], [, b]) => a.endsAt - b.endsAt).at(isLast ? -1 : 0);
  }
}

/** What the processes that use the store have in common. */
export class PlainData {
  readonly keys = new Map<string, PlainKey>();
  /** The last token of each key: a counter. */
  readonly tokens = new Map<string, number>();
  readonly latches = new Map<string, PlainLatch>();

  find(name: string, time: number, kind?: Kind): PlainKey | undefined {
    const key = this.keys.get(name);
    key?.expire(time);
    if (key && key.holds.size === 0 && key.queue.length === 0) this.keys.delete(name);
    return kind && key?.kind !== kind ? undefined : this.keys.get(name);
  }

  open(name: string, time: number, kind: Kind): PlainKey {
    this.assertKind(name, time, kind);
    const key = this.find(name, time) ?? new PlainKey(kind);
    this.keys.set(name, key);
    return key;
  }

  findLatch(name: string, time: number): PlainLatch | undefined {
    const latch = this.latches.get(name);
    if (latch && latch.endsAt <= time) this.latches.delete(name);
    return this.latches.get(name);
  }

  assertKind(name: string, time: number, wanted: Kind | 'count-down latch'): void {
    const kind = this.find(name, time)?.kind ?? (this.findLatch(name, time) ? 'count-down latch' : wanted);
    if (kind !== wanted) throw new LockConfigError(`"${name}" is in use as a ${kind}: it cannot be a ${wanted}.`, { key: name });
  }

  /** Names of the keys that are held or waited for. */
  remains(): string[] {
    return [...this.keys.keys()].filter((name) => this.find(name, performance.now()));
  }
}

class PlainDriver implements LeaseDriver {
  readonly placeLifetime = PLACE_LIFETIME;
  readonly isShared: boolean;

  constructor(
    private readonly data: PlainData,
    private readonly kind: Kind,
  ) {
    this.isShared = kind !== 'mutex';
  }

  /** A yield is a request of its own: others may come between. */
  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, yields } = request;
    const yielded = yields === undefined ? undefined : await this.release({ key, owner: yields, keepFor: 0 });
    return step((time) => ({ ...this.take(request, time), yielded }));
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return batch.map(({ key, owner, ttl }) =>
      step((time) => {
        const hold = this.data.find(key, time, this.kind)?.holds.get(owner);
        if (!hold || hold.state === 'kept') return 'lost';
        hold.endsAt = Math.max(hold.endsAt, time + ttl);
        return 'renewed';
      }),
    );
  }

  release({ key: name, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    return step((time) => {
      const key = this.data.find(name, time, this.kind);
      const hold = key?.holds.get(owner);
      if (!key || !hold) return 'lost';
      if (hold.state === 'kept') return 'released';
      if (keepFor > 0) Object.assign(hold, { state: 'kept', endsAt: time + keepFor });
      else key.holds.delete(owner);
      key.serve(time);
      return 'released';
    });
  }

  leave({ key: name, owner }: Tenancy): Promise<void> {
    return step((time) => {
      const key = this.data.find(name, time, this.kind);
      key?.leave(owner);
      if (key?.holds.get(owner)?.state !== 'kept') key?.holds.delete(owner);
      key?.serve(time);
    });
  }

  check({ key: name, owner }: Tenancy): Promise<CheckReply> {
    return step((time) => {
      const key = this.data.find(name, time, this.kind);
      const own = key?.holds.get(owner);
      const isHeld = own !== undefined && own.state !== 'kept';
      const [holder = null, hold] = isHeld ? [owner, own] : (key?.inTheWay(true) ?? []);
      const token = hold?.state === 'held' && !this.isShared ? this.data.tokens.get(name)! : null;
      const isQueued = key?.queue.some((place) => place.owner === owner);
      const state = isHeld ? 'held' : isQueued ? 'queued' : hold ? 'taken' : 'free';
      return { state, remaining: hold ? hold.endsAt - time : 0, holder, token };
    });
  }

  private take(request: AcquireRequest, time: number): AcquireReply {
    const { key: name, owner, ttl, queue, share = WHOLE } = request;
    const key = this.data.open(name, time, this.kind);
    key.permits = share.permits;
    const isGuest = !queue && !key.queue.some((place) => place.owner === owner);
    const writer = share.beside === undefined ? undefined : key.holds.get(share.beside);
    if (writer && writer.state !== 'kept' && key.hasRoomFor(share.count, share.beside) && !key.holds.has(owner)) {
      key.holds.set(owner, { count: share.count, endsAt: time, state: 'offered' });
    } else if (!key.holds.has(owner)) key.join(request, time);
    key.serve(time);
    if (isGuest) key.leave(owner);
    key.serve(time);
    const hold = key.holds.get(owner);
    if (hold && hold.state !== 'kept') {
      // Of an offer that is taken the whole lease begins; what is repeated brings no end nearer.
      hold.endsAt = Math.max(hold.state === 'held' ? hold.endsAt : 0, time + ttl);
      hold.state = 'held';
      return { granted: true, token: this.token(request) };
    }
    const [holder = null, other] = key.inTheWay(share.count === share.permits) ?? [];
    const ahead = queue ? key.queue.findIndex((place) => place.owner === owner) : 0;
    return { granted: false, remaining: other ? other.endsAt - time : -1, holder, ahead };
  }

  /** Readers get that of the last write. */
  private token({ key, tokens, floor = 0, share = WHOLE }: AcquireRequest): number {
    const last = this.data.tokens.get(key) ?? 0;
    const isRead = this.kind === 'read/write lock' && share.count !== Infinity;
    const first = Math.max(isRead ? last : last + 1, floor, 1);
    this.data.tokens.set(key, isRead ? first : first + tokens - 1);
    return first;
  }
}

/**
 * The least that the seam asks of a store, to prove that the engine needs no more: nobody is woken, a yield is a release and then an acquire, tokens
 * are no times, and requests are applied and answered in any order. Each call is a process of its own over the same data.
 */
export function plainStore(data: PlainData): LockStore {
  const driver = (kind: Kind) => new PlainDriver(data, kind);
  return {
    name: 'plain',
    requestTimeout: 1_000,
    mutex: driver('mutex'),
    readWriteLock: { read: driver('read/write lock'), write: driver('read/write lock') },
    semaphore: driver('semaphore'),
    countDownLatch: new PlainLatchDriver(data),
    close: () => Promise.resolve(),
  };
}
