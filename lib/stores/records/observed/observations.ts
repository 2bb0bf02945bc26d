import { awake as now } from '../../../core/util/clock.js';

/** Most dates that are kept: enough for months that are {@link EXACT}. */
const MOST_DATES = 4096;
/** The part of its age to which a date stays exact. */
const EXACT = 0.005;
/** Milliseconds between two dates, at least. */
const APART = 5;
/** Most keys whose stamps are remembered. */
const MOST_KEYS = 10_000;

/** The name of a request that has set an end, and a count of writes that the store had reached no earlier than with it. */
export type Stamp = readonly [name: string, revision: number | undefined];

/** The knowledge of a process when it sends a request. The reply to it has no smaller count, unless the store was restored from a copy. */
interface Known {
  readonly epoch: number;
  readonly count: number;
}

/** When a stamp was seen first. */
interface Sight {
  readonly time: number;
  readonly revision: number | undefined;
}

/**
 * When this process has seen stamps first, on its own monotonic clock. A store that counts its writes is a clock for that.
 * What was written when its count was no larger than in an earlier reply is at least as old as that reply, also if this process sees it only now.
 */
export class Observations {
  /** The time of the last reply with a count. */
  heardAt = -Infinity;
  /** Grows with each {@link forget}. */
  epoch = 0;
  /** Tables that have these observations. */
  tables = 0;
  /** The largest count of a reply. */
  private count = 0;
  /** The name of the store that has answered last. */
  private store: string | undefined;
  private readonly counts: number[] = [];
  private readonly times: number[] = [];
  private readonly sights = new Map<string, ReadonlyMap<string, Sight>>();

  /** To be kept with each request that is sent. */
  get known(): Known {
    return { epoch: this.epoch, count: this.count };
  }

  /**
   * Learns the store's count from a reply.
   *
   * @param sent {@link known} when the request was sent. Replies may overtake each other.
   * @returns the epoch of what the reply says.
   */
  hear(count: number | undefined, sent: Known): number {
    // A reply that comes after all was forgotten may be of the store that was replaced.
    if (count === undefined || sent.epoch !== this.epoch) return sent.epoch;
    this.heardAt = now();
    if (count < sent.count) this.forget();
    this.count = Math.max(this.count, count);
    if (this.count === this.counts.at(-1) || this.heardAt < (this.times.at(-1) ?? -Infinity) + APART) return this.epoch;
    this.counts.push(this.count);
    this.times.push(this.heardAt);
    if (this.counts.length > MOST_DATES) this.thinOut();
    return this.epoch;
  }

  /** The store may have been restored from a copy: what it has answered may be undone. */
  forget(): void {
    this.epoch++;
    this.count = this.counts.length = this.times.length = 0;
    this.sights.clear();
  }

  /** Another store may answer from now on; not if it has the name of the last one. */
  replaced(store?: string): void {
    const isSame = store !== undefined && (this.store ?? store) === store;
    this.store = store;
    if (!isSame) this.forget();
  }

  /** When each of these stamps was seen first. They are all that is there of this key: the others are forgotten, and would be new to it. */
  see(key: string, stamps: readonly Stamp[]): ReadonlyMap<string, Sight> {
    const before = this.sights.get(key);
    const sights = new Map<string, Sight>();
    const time = now();
    for (const [name, given = Infinity] of stamps) {
      const known = sights.get(name) ?? before?.get(name);
      const revision = Math.min(known?.revision ?? Infinity, given);
      const seenAt = Math.min(known?.time ?? time, this.dateOf(revision) ?? time);
      sights.set(name, { time: seenAt, revision: revision < Infinity ? revision : undefined });
    }
    this.sights.delete(key);
    if (stamps.length > 0) this.sights.set(key, sights);
    if (this.sights.size > MOST_KEYS) this.sights.delete(this.sights.keys().next().value!);
    return sights;
  }

  /** The count when the stamp was written, or later. */
  revisionOf(key: string, stamp: string): number | undefined {
    return this.sights.get(key)?.get(stamp)?.revision;
  }

  /** The first time by which the store is known to have reached a count. */
  dateOf(count: number): number | undefined {
    const index = this.counts.findLastIndex((other) => other < count) + 1;
    return this.times[index];
  }

  /** The last count that was reached by a time; 0: none is known. */
  countAt(time: number): number {
    return this.counts[this.times.findLastIndex((other) => other <= time)] ?? 0;
  }

  private thinOut(): void {
    const { counts, times, heardAt } = this;
    let last = -Infinity;
    const isKept = times.map((time, index) => {
      const isNeeded = (times[index + 1] ?? Infinity) - last > (heardAt - time) * EXACT;
      if (isNeeded) last = time;
      return isNeeded;
    });
    for (const list of [counts, times]) list.splice(0, Infinity, ...list.filter((_, index) => isKept[index]));
  }
}
