import { keptBy } from '../../core/model/owner.js';
import type {
  AcquireReply,
  AcquireRequest,
  AdoptReply,
  AdoptRequest,
  CheckReply,
  ExtendReply,
  ExtendRequest,
  ReleaseRequest,
  RenewRequest,
  Share,
  Tenancy,
} from '../../core/store/lease-driver.js';
import {
  ALL,
  holdOf,
  isKept,
  QUEUE_LIFE,
  taken,
  type Hold,
  type LeaseKind,
  type LeaseRecord,
  type QueueEntry,
  type RecordWork,
} from './record.work.js';

/** Most milliseconds that a waiter has to confirm an offer. */
const LONGEST_OFFER = 1000;
/** Most waiters that one record keeps. Later ones poll. */
const LONGEST_QUEUE = 1000;
const WHOLE: Share = { count: ALL, permits: ALL, rank: 0 };

/**
 * The steps of each verb on the record of a lock, the same for all kinds of lock and all stores but Redis. They only change the {@link RecordWork} that
 * they are given, so that they can be done again on a newer record.
 */
export class LeaseSteps {
  constructor(
    readonly kind: LeaseKind,
    private readonly side?: 'read' | 'write',
  ) {}

  /** A reader gets the token of the last write, which must be known. */
  get needsFence(): boolean {
    return this.side === 'read';
  }

  /** @param inbox where the owner can be woken; '': nowhere. */
  acquire(work: RecordWork, request: AcquireRequest, inbox: string): AcquireReply {
    const { owner, ttl, queue, share = WHOLE, yields } = request;
    const record = work.open<LeaseRecord>(this.kind, () => ({ kind: this.kind, permits: ALL, holds: [], queue: [], queueEndsAt: 0 }));
    const count = Math.min(share.count, ALL);
    record.permits = Math.min(share.permits, ALL);
    const yielded = yields === undefined ? undefined : drop(work, record, yields) ? 'released' : 'lost';
    let isGuest = false;
    let hold = holdOf(record, owner);
    if (!hold) {
      const own = (share.beside !== undefined && holdOf(record, share.beside)?.count) || 0;
      const isNext = own > 0 || record.queue.length === 0;
      if (isNext && taken(record) - own + count <= record.permits) hold = put(work, record, { owner, count }, 0);
      else if (queue || !isNext) isGuest = join(work, record, request, count, inbox) && !queue;
    }
    serve(work, record, owner);
    // An owner that does not queue holds nobody up, and leaves no trace.
    if (isGuest && leave(record, owner)) serve(work, record);
    // Thousands of callers of one process can be served at once: each search counts.
    hold ??= holdOf(record, owner);
    if (hold) {
      if (leave(record, owner)) work.changed();
      prolong(work, hold, ttl);
      return { granted: true, token: this.reserve(work, hold, request.tokens, request.floor), yielded };
    }
    const other = inTheWay(record, count === record.permits);
    const ahead = queue ? positionOf(record, owner) : 0;
    return { granted: false, remaining: other ? remaining(work, other) : -1, holder: other?.owner ?? null, ahead, yielded };
  }

  renew(work: RecordWork, { owner, ttl, outlives }: RenewRequest): 'renewed' | 'lost' {
    const record = this.own(work);
    const hold = record && holdOf(record, owner);
    if (!hold) return 'lost';
    prolong(work, hold, ttl, outlives);
    return 'renewed';
  }

  extend(work: RecordWork, { tokens, ...request }: ExtendRequest): ExtendReply {
    if (this.renew(work, request) === 'lost') return 'lost';
    const record = this.own(work) as LeaseRecord;
    if (record.queue.length > 0) return 'wanted';
    return { token: this.reserve(work, holdOf(record, request.owner) as Hold, tokens) };
  }

  adopt(work: RecordWork, { owner, from, ttl, tokens }: AdoptRequest): AdoptReply {
    const record = this.own(work);
    const given = record && drop(work, record, from);
    const hold = given ? put(work, record, { owner, count: given.count }, 0) : record && holdOf(record, owner);
    if (!hold) return 'lost';
    prolong(work, hold, ttl);
    return { token: this.reserve(work, hold, tokens) };
  }

  release(work: RecordWork, { owner, keepFor }: ReleaseRequest): 'released' | 'lost' {
    const record = this.own(work);
    if (!record) return 'lost';
    if (leave(record, owner)) work.changed();
    const wasHeld = record.holds.length > 0;
    const hold = drop(work, record, owner);
    if (hold && keepFor > 0) {
      drop(work, record, keptBy(owner));
      put(work, record, { owner: keptBy(owner), count: hold.count }, keepFor);
      // It must last, though the owner may be gone.
      work.changed(true);
    }
    // A waiter of a key that has run out asks for it by itself.
    if (wasHeld) serve(work, record);
    // Waiters only know the later end of the lease.
    if (hold && keepFor > 0 && record.queue[0]) work.notify(record.queue[0], keepFor);
    return hold || isKept(record, owner) ? 'released' : 'lost';
  }

  leave(work: RecordWork, { owner }: Tenancy): void {
    this.release(work, { key: work.key, owner, keepFor: 0 });
    // An unanswered acquire that arrives after this finds another version, and fails.
    if (work.mayBeOutdated) work.changed();
  }

  check(work: RecordWork, { owner }: Tenancy): CheckReply {
    const record = this.own(work);
    const own = record && holdOf(record, owner);
    const hold = own ?? (record && inTheWay(record, true));
    const isQueued = record?.queue.some((entry) => entry.owner === owner);
    const state = own ? 'held' : isQueued ? 'queued' : hold ? 'taken' : 'free';
    const token = this.kind === 'mutex' && hold && work.fence > 0 ? work.fence : null;
    return { state, remaining: hold ? remaining(work, hold) : 0, holder: hold?.owner ?? null, token };
  }

  /** A key that is another kind of lock is not ours. */
  private own({ record }: RecordWork): LeaseRecord | undefined {
    return record?.kind === this.kind ? record : undefined;
  }

  private reserve(work: RecordWork, hold: Hold, count: number, floor = 0): number {
    const isKnown = this.side === 'read' && work.fence > 0 && work.fence >= floor;
    const token = isKnown ? work.fence : work.reserve(this.side === 'read' ? 1 : count, floor);
    // It may have been an offer.
    if (hold.token === null) work.changed(true);
    hold.token = work.fence;
    return token;
  }
}

/** Offers free permits to the waiters, for a moment: each confirms by asking again. One that wants more than is free holds up those behind it. */
function serve(work: RecordWork, record: LeaseRecord, asker?: string): void {
  if (record.queue.length === 0) return;
  let free = record.permits - taken(record);
  for (let head = record.queue[0]; head && head.count <= free; head = record.queue[0]) {
    const { owner, inbox, count, offer } = head;
    record.queue.shift();
    free -= count;
    put(work, record, { owner, count, inbox }, offer);
    if (owner !== asker) work.notify(head);
  }
}

function put(work: RecordWork, record: LeaseRecord, { owner, count, inbox }: Pick<Hold, 'owner' | 'count' | 'inbox'>, ttl: number): Hold {
  const { late, stamp } = work.time;
  const hold: Hold = { owner, count, endsAt: late + ttl, ttl, token: null, inbox, stamp };
  record.holds.push(hold);
  work.changed();
  return hold;
}

function drop(work: RecordWork, record: LeaseRecord, owner: string): Hold | undefined {
  const index = record.holds.findIndex((hold) => hold.owner === owner);
  if (index < 0) return undefined;
  work.changed();
  return record.holds.splice(index, 1)[0];
}

function prolong(work: RecordWork, hold: Hold, ttl: number, outlives = false): void {
  const mayOutlive = outlives || hold.token === null || ttl > hold.ttl;
  const isChanged = work.prolong(hold, ttl);
  if (!mayOutlive || hold.stamp !== undefined) return;
  hold.keepUntil = Math.max(hold.keepUntil ?? 0, work.time.late + ttl);
  if (!isChanged) work.changed(true);
}

/** Puts the owner behind those of its rank, and returns whether it is new. An owner that is queued already stays where it is, and prolongs the queue. */
function join(work: RecordWork, record: LeaseRecord, request: AcquireRequest, count: number, inbox: string): boolean {
  const { owner, ttl, queue, holding = [], share = WHOLE } = request;
  const known = record.queue.find((entry) => entry.owner === owner);
  const hasMoved = known !== undefined && inbox !== '' && known.inbox !== inbox;
  if (hasMoved) known.inbox = inbox;
  if (!known) {
    if (queue && record.queue.length >= LONGEST_QUEUE) return false;
    const entry: QueueEntry = {
      owner,
      inbox,
      offer: Math.min(ttl, LONGEST_OFFER),
      count,
      rank: share.rank,
      since: Math.floor(work.time.micros / 1000),
      ...(holding.length > 0 && { holding }),
    };
    const behind = record.queue.findIndex(({ rank }) => rank > share.rank);
    record.queue.splice(behind < 0 ? record.queue.length : behind, 0, entry);
  }
  const { late, stamp } = work.time;
  if (queue && (!known || hasMoved || record.queueEndsAt < late + QUEUE_LIFE / 2)) {
    record.queueEndsAt = late + QUEUE_LIFE;
    record.queueStamp = stamp;
    work.changed();
  }
  return !known;
}

function leave(record: LeaseRecord, owner: string): boolean {
  const index = record.queue.findIndex((entry) => entry.owner === owner);
  if (index >= 0) record.queue.splice(index, 1);
  return index >= 0;
}

function positionOf({ queue }: LeaseRecord, owner: string): number {
  const index = queue.findIndex((entry) => entry.owner === owner);
  return index < 0 ? queue.length : index;
}

/** The hold that a waiter waits for: the last one to end if it wants all permits, else the first one. */
function inTheWay({ holds }: LeaseRecord, wantsAll: boolean): Hold | undefined {
  let found: Hold | undefined;
  for (const hold of holds) if (!found || hold.endsAt > found.endsAt === wantsAll) found = hold;
  return found;
}

/** Never more than was asked for, nor negative, which means unknown. */
function remaining({ time }: RecordWork, { endsAt, ttl }: Hold): number {
  return Math.max(0, Math.min(endsAt - time.early, ttl));
}
