import { configError } from '../../core/model/errors.js';
import { keptBy } from '../../core/model/owner.js';

export type LeaseKind = 'mutex' | 'read/write lock' | 'semaphore';

/** Stands for `Infinity`, which JSON does not have. Sums of it are exact. */
export const ALL = 1_000_000_000;

/** A waiter. */
export interface QueueEntry {
  readonly owner: string;
  /** '': it asks by itself. */
  inbox: string;
  /** Milliseconds that an offer to it lasts. */
  readonly offer: number;
  /** Permits that it waits for. */
  readonly count: number;
  /** The queue is sorted by it, and then by arrival. */
  readonly rank: 0 | 1;
  /** Its arrival, in milliseconds since 1970. */
  readonly since: number;
  /** The keys that its call chain holds. */
  readonly holding?: readonly string[];
}

/** A hold, or a latch. */
interface Ending {
  endsAt: number;
  /** Milliseconds from the request that set the end. */
  ttl: number;
  /** Names that request, in observed time. */
  stamp?: string | undefined;
}

/** The permits that an owner has, is offered, or keeps for its minHold after the release. */
export interface Hold extends Ending {
  readonly owner: string;
  readonly count: number;
  /** The last token of its last grant; `null`: it is an offer, or kept. */
  token: number | null;
  /** The end of the grant, or of a longer lease that was asked for since: a `minHold` may last until then, also if the process dies. */
  keepUntil?: number;
  /** For an offer: the inbox that it was sent to. */
  readonly inbox?: string | undefined;
}

/** The holders and waiters of a key. A mutex is held by one owner, with all permits. Times are the table's clock, in milliseconds. */
export interface LeaseRecord {
  readonly kind: LeaseKind;
  /** All permits, as the last request has them. */
  permits: number;
  holds: Hold[];
  queue: QueueEntry[];
  /** The queue is forgotten if nobody asks until then. */
  queueEndsAt: number;
  /** Names the request that set its end, as {@link Ending.stamp}. */
  queueStamp?: string | undefined;
}

export interface LatchRecord extends Ending {
  readonly kind: 'count-down latch';
  readonly id: string;
  count: number;
  round: number;
  /** The last operation of each line: its number, its reply, and when it may be forgotten; in observed time also as in {@link Ending}. */
  lines: Record<string, readonly [number: number, reply: number, endsAt: number, ttl?: number, stamp?: string]>;
  /** Owners that wait, and their inboxes. */
  waiters: Record<string, string>;
}

export type KeyRecord = (LeaseRecord | LatchRecord) & {
  /** Until then the key does not count as void: a late request that expects it to be void must fail. */
  notVoidUntil?: number;
};

/** The table's clock, as far as it is known, in milliseconds. */
export interface TableTime {
  /** It is not earlier there: what ends before this has ended. */
  readonly early: number;
  /** It is not later there: what ends a `ttl` after this lasts at least a `ttl`. */
  readonly late: number;
  /** The smallest token that is larger than those of the past: microseconds since 1970. */
  readonly micros: number;
  /** Only in observed time: names the request that is being served. No other request ever has this name. */
  readonly stamp?: string;
}

/** Milliseconds for which a queue is kept in which nobody asks. */
export const QUEUE_LIFE = 60_000;
/** Milliseconds in which a request of unknown outcome may still arrive, at least. */
const LATE = 10_000;

/** The record of one key while requests change it, and what is to be written with it. */
export class RecordWork {
  /** Whether anything is to be written. */
  isChanged = false;
  /** Whether an owner relies on the change, so that it must survive a crash of the server. */
  isDurable = false;
  /** How many tokens the change reserves. */
  tokens = 0;
  /** The change relies on the end of what ended by then. */
  notBefore = 0;
  /** Lines for each inbox; see `readMessage`. */
  messages: Map<string, string[]> | undefined;
  private readonly notVoidUntil: number;

  /**
   * @param record is changed in place.
   * @param fence the last token that was reserved; 0: none is known.
   * @param arrivesFor milliseconds for which a request of unknown outcome may still arrive at the table; 0: there is none.
   */
  constructor(
    readonly key: string,
    public record: KeyRecord | undefined,
    readonly time: TableTime,
    public fence: number,
    private readonly arrivesFor = 0,
  ) {
    const { notVoidUntil = 0 } = record ?? {};
    // In observed time each change expects a version, so that a late one fails.
    if (time.stamp !== undefined) this.notVoidUntil = 0;
    else this.notVoidUntil = arrivesFor > 0 ? time.late + Math.max(LATE, arrivesFor) : notVoidUntil > time.early ? notVoidUntil : 0;
    if (record?.kind === 'count-down latch') {
      if (record.endsAt <= time.early) this.record = undefined;
    } else if (record) this.dropEnded(record);
  }

  /** Whether a request of unknown outcome may still arrive. */
  get mayBeOutdated(): boolean {
    return this.arrivesFor > 0;
  }

  /** When what is there ends; 0: nobody holds the key or waits for it. */
  get endsAt(): number {
    const { record } = this;
    if (!record) return 0;
    if (record.kind === 'count-down latch') return record.endsAt;
    let end = record.queue.length > 0 ? record.queueEndsAt : 0;
    for (const { endsAt } of record.holds) end = Math.max(end, endsAt);
    return end;
  }

  /** The record to write. `null`: the key is free, and counts as void from now on. */
  get written(): { readonly record: string | null; readonly endsAt: number } {
    const { endsAt, notVoidUntil, time } = this;
    if (notVoidUntil === 0) return endsAt === 0 ? { record: null, endsAt: time.early } : { record: JSON.stringify(this.record), endsAt };
    const record: KeyRecord =
      endsAt > 0 && this.record ? this.record : { kind: 'mutex', permits: ALL, holds: [], queue: [], queueEndsAt: 0 };
    return { record: JSON.stringify({ ...record, notVoidUntil }), endsAt: Math.max(endsAt, notVoidUntil) };
  }

  /** The record of a key that is this kind of lock, or is nothing yet. @throws {LockConfigError} if it is in use as another kind. */
  open<T extends KeyRecord>(kind: T['kind'], make: () => T): T {
    const found = this.find<T>(kind) ?? make();
    this.record = found;
    return found;
  }

  /** `undefined`: nothing is there. @throws {LockConfigError} if the key is in use as another kind of lock. */
  find<T extends KeyRecord>(kind: T['kind']): T | undefined {
    const { record, key } = this;
    if (!record || record.kind === kind) return record as T | undefined;
    if (this.endsAt === 0) return undefined;
    throw configError('KIND', `"${key}" is in use as a ${record.kind}: it cannot be a ${kind} at the same time.`, { key });
  }

  changed(isDurable = false): void {
    this.isChanged = true;
    this.isDurable ||= isDurable;
  }

  /** Moves an end to so many milliseconds from now, never earlier. False: it is late enough, and stays as it is. */
  prolong(what: Ending, ttl: number): boolean {
    const { late, stamp } = this.time;
    const isLateEnough = what.endsAt >= late + ttl;
    // In observed time it is so for this process alone. Others have seen it earlier, so that it ends earlier for them.
    if (isLateEnough && stamp === undefined) return false;
    what.ttl = isLateEnough ? what.endsAt - late : ttl;
    what.endsAt = late + what.ttl;
    what.stamp = stamp;
    this.changed(true);
    return true;
  }

  /** Reserves tokens, and returns the first. */
  reserve(count: number, floor = 0): number {
    const first = Math.max(this.fence + 1, this.time.micros, floor);
    this.fence = first + count - 1;
    this.tokens += count;
    this.changed(true);
    return first;
  }

  /** Wakes an owner, now or after so many milliseconds. */
  notify({ inbox, owner }: { readonly inbox: string; readonly owner: string }, askIn?: number): void {
    if (inbox === '') return;
    this.messages ??= new Map();
    const lines = this.messages.get(inbox) ?? [];
    this.messages.set(inbox, lines);
    lines.push(askIn === undefined ? owner : `${owner}\t${Math.ceil(askIn)}`);
  }

  private dropEnded(record: LeaseRecord): void {
    const { early } = this.time;
    if (record.queue.length > 0 && record.queueEndsAt <= early) record.queue = [];
    if (record.holds.every(({ endsAt }) => endsAt > early)) return;
    for (const { endsAt, token, inbox } of record.holds) {
      if (endsAt > early) continue;
      this.notBefore = Math.max(this.notBefore, endsAt);
      // A process that does not confirm in time is likely to be dead: its other queue entries would cost the next waiters as much again.
      if (token === null && inbox) record.queue = record.queue.filter((entry) => entry.inbox !== inbox);
    }
    record.holds = record.holds.filter(({ endsAt }) => endsAt > early);
  }
}

/** The hold of the owner. */
export function holdOf({ holds }: LeaseRecord, owner: string): Hold | undefined {
  return holds.find((hold) => hold.owner === owner);
}

export function isKept(record: LeaseRecord, owner: string): boolean {
  return holdOf(record, keptBy(owner)) !== undefined;
}

export function taken({ holds }: LeaseRecord): number {
  let sum = 0;
  for (const { count } of holds) sum += count;
  return sum;
}
