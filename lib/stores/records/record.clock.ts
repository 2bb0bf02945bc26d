import { awake as now, sleptSince } from '../../core/util/clock.js';
import type { TableTime } from './record.work.js';

/** Milliseconds for which a reply tells the time: clocks drift apart. */
const LIFE = 10_000;
/** After so many milliseconds a wider sample replaces a narrower one. */
const RENEWED_AFTER = 1000;
/** Two clocks drift apart by less than this share of the time that passes. */
const DRIFT = 0.001;
/** From this on a time is one of the wall clock, in milliseconds since 1970. */
const WALL = 1e12;

/** How much later the table's clock is than ours, by one reply: between two bounds, a trip apart. */
export interface Sample {
  readonly least: number;
  readonly most: number;
  readonly at: number;
}

/**
 * A table's clock, as its replies show it, without a request of its own: a reply was made between our request and its arrival. Both bounds are used to
 * the holder's advantage.
 */
export class RecordClock {
  private sample: Sample | undefined;

  /** @param observed the time of a table without a clock, which is always known. */
  constructor(private readonly observed?: () => TableTime) {}

  get isKnown(): boolean {
    return this.observed !== undefined || (this.sample !== undefined && now() < this.sample.at + LIFE && !sleptSince(this.sample.at));
  }

  /** Only while it {@link isKnown}. */
  get time(): TableTime {
    if (this.observed) return this.observed();
    const { least, most } = this.sample as Sample;
    const time = now();
    const late = time + most;
    return { early: time + least, late, micros: Math.floor((late < WALL ? Date.now() : late) * 1000) };
  }

  /** The sample that {@link time} follows from. */
  get basis(): Sample | undefined {
    return this.sample;
  }

  /** Another server may answer next time. */
  forget(): void {
    this.sample = undefined;
  }

  /** Learns from a reply to a request that was sent at this time of our clock: nothing if the machine was suspended meanwhile. */
  learn(time: number, sentAt: number): void {
    if (sleptSince(sentAt)) return;
    const at = now();
    const next = { least: time - at, most: time - sentAt, at };
    const sample = this.isKnown ? this.sample : undefined;
    const slack = sample ? slackOf(sample, at) : 0;
    const isForward = sample !== undefined && next.least > sample.most + slack;
    const isBack = sample !== undefined && next.most < sample.least - slack;
    const isNarrower = sample === undefined || next.most - next.least <= sample.most - sample.least;
    if (isForward || isBack || isNarrower || at > sample.at + RENEWED_AFTER) this.sample = next;
  }

  /** Whether the table's clock was set forward since the given sample: what was written with times from that sample ends too early. */
  isSetForward(time: number, basis: Sample | undefined): boolean {
    if (!basis) return false;
    const at = now();
    return time - at > basis.most + slackOf(basis, at);
  }
}

function slackOf({ at }: Sample, time: number): number {
  return 1 + (time - at) * DRIFT;
}
