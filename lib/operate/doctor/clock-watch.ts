import type { DoctorCheck } from '../../core/model/doctor-report.js';
import { checkOf, type Finding } from '../../core/store/store-doctor.js';
import { dateOf, now } from '../../core/util/clock.js';
import { duration } from '../../core/util/duration.js';

/** Of several measurements, the one with the fastest answer is the most exact. */
const SAMPLES = 5;
/** As a share of the time: a lease is valid for its holder for 1 % less than for the store. */
const MOST_DRIFT = 0.005;
/** Milliseconds. A larger change in so short a time is not drift. */
const STEP = 500;
const MOST_OFFSET = 1000;

interface Reading {
  /** The store's clock minus our monotonic clock. */
  readonly ahead: number;
  /** On our clock, in the middle of the request. */
  readonly at: number;
  /** The largest possible error. */
  readonly doubt: number;
}

/** Compares the clock of a store with the monotonic clock of this process, over some time. */
export class ClockWatch {
  private readonly first: Promise<Reading>;

  /** Begins to watch. @param time asks for the clock in milliseconds since 1970. */
  constructor(private readonly time: () => Promise<number>) {
    this.first = readingOf(time);
    this.first.catch(() => undefined);
  }

  /** To be called some time later. Never rejects. */
  async checks(): Promise<DoctorCheck[]> {
    const second = readingOf(this.time);
    const both = Promise.all([this.first, second]);
    return Promise.all([
      checkOf({ id: 'clock', name: "speed of the store's clock", touches: ['G2', 'G3'] }, async () => speedOf(...(await both))),
      checkOf({ id: 'clock-offset', name: 'clock of the store against ours', touches: [] }, async () => offsetOf(await second)),
    ]);
  }
}

function speedOf(first: Reading, second: Reading): Finding {
  const time = second.at - first.at;
  const gained = second.ahead - first.ahead;
  const doubt = first.doubt + second.doubt;
  const over = `in ${duration(time)}`;
  const limits = { purpose: 'efficiency', because: 'its clock does not run evenly, by which leases end' } as const;
  const advice = 'Let NTP slew the clock of the server, and not step it.';
  if (Math.abs(gained) > STEP + doubt) {
    return { state: 'bad', seen: `jumped by ${Math.round(gained).toLocaleString('en-US')} ms ${over}`, advice, limits };
  }
  const seen = `${Math.abs(gained).toFixed(1)} ms ${gained < 0 ? 'slow' : 'fast'} ${over}, measured to ± ${doubt.toFixed(1)} ms`;
  return Math.abs(gained) > MOST_DRIFT * time + doubt ? { state: 'bad', seen, advice, limits } : { seen };
}

function offsetOf({ ahead, at, doubt }: Reading): Finding {
  const offset = ahead + at - dateOf(at);
  const seen = `${Math.abs(Math.round(offset)).toLocaleString('en-US')} ms ${offset < 0 ? 'behind' : 'ahead of'} this machine`;
  if (Math.abs(offset) <= MOST_OFFSET + doubt) return { seen };
  return {
    state: 'warn',
    seen,
    advice: 'Set one of them right. Locks do not depend on it, but `since` in reports and crons of several machines do.',
  };
}

async function readingOf(time: () => Promise<number>): Promise<Reading> {
  let best: Reading | undefined;
  for (let i = 0; i < SAMPLES; i++) {
    const start = now();
    const clock = await time();
    const end = now();
    const reading = { ahead: clock - (start + end) / 2, at: (start + end) / 2, doubt: (end - start) / 2 + 1 };
    if (best === undefined || reading.doubt < best.doubt) best = reading;
  }
  return best!;
}
