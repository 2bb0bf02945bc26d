import { validity } from '../../../../lib/core/util/clock.js';
import type { SimulatedProcess } from './simulated-time.js';

/** What an owner has, by the clock of its own process. */
export class Tenure {
  /** Of its monotonic clock. */
  validUntil = -Infinity;
  /** The last grant or renewal, as it was sent: true time. */
  sentAt = 0;
  ttl = 0;
  /** Nobody may see it for longer, in true time, if requests are not late. */
  endsBy = 0;
  token = 0;
  isOver = false;
  private stops = 0;
  private era: number | undefined;

  constructor(
    readonly process: SimulatedProcess,
    readonly key: string,
    readonly owner: string,
    /** Permits. */
    readonly count: number,
  ) {}

  /** Whether its holder may rely on it, unless it stood still together with its clock: nobody can know that. */
  isValid(era: number): boolean {
    const { process } = this;
    return !this.isOver && !process.isDead && process.now < this.validUntil && process.stops === this.stops && this.era === era;
  }

  /** A grant or a renewal was sent. */
  asked({ sentAt }: Sent, ttl: number): void {
    this.endsBy = Math.max(this.endsBy, sentAt + 1.01 * ttl);
  }

  /** A grant or a renewal. */
  confirm({ sentAt, local, stops, era }: Sent, ttl: number): void {
    this.validUntil = Math.max(this.validUntil, local + validity(ttl));
    this.sentAt = sentAt;
    this.ttl = ttl;
    this.stops = stops;
    this.era = era;
  }
}

/** When a request was sent. */
export interface Sent {
  readonly sentAt: number;
  readonly local: number;
  readonly stops: number;
  /** The restore of the store that everybody knew of; `undefined`: somebody does not. */
  readonly era: number | undefined;
  /** The largest token of the key that was granted by then. */
  readonly token: number;
}

interface Kept {
  readonly count: number;
  readonly until: number;
}

/** What a lock promises, whatever happens. */
export class Promises {
  readonly broken: string[] = [];
  readonly tenures = new Map<string, Set<Tenure>>();
  readonly tokens = new Map<string, number>();
  grants = 0;
  kept = 0;
  private readonly keptOf = new Map<string, Kept[]>();

  /** @param trueTime for messages, and for a minHold. */
  constructor(
    private readonly trueTime: () => number,
    private readonly era: () => number,
  ) {}

  /** Tokens grow, and nobody gets what others have. */
  granted(tenure: Tenure, token: number, last: number, permits: number, isReader: boolean): void {
    const { key, owner, count } = tenure;
    if (!tenure.isValid(this.era())) return;
    if (isReader ? token < last : token <= last) this.fail(`${owner} gets token ${token} of ${key}, after ${last}`);
    tenure.token = token;
    if (!isReader) this.tokens.set(key, Math.max(token, this.tokens.get(key) ?? 0));
    const all = this.tenures.get(key) ?? new Set();
    this.tenures.set(key, all);
    for (const other of all) if (!other.isValid(this.era())) all.delete(other);
    const kept = (this.keptOf.get(key) ?? []).filter(({ until }) => until > this.trueTime());
    this.keptOf.set(key, kept);
    let taken = count;
    for (const other of [...all, ...kept]) taken += other.count;
    if (taken > permits) {
      const valid = [...all].map((other) => `${other.owner} (${textOf(other)})`);
      const waits = kept.map(({ until }) => `a minHold for ${(until - this.trueTime()).toFixed(1)} ms`);
      this.fail(`${owner} (${textOf(tenure)}) gets ${key} beside ${[...valid, ...waits].join(', ')}`);
    }
    all.add(tenure);
    this.grants++;
  }

  /** It was released with a minHold. */
  keeps({ key, count }: Tenure, until: number): void {
    this.kept++;
    this.keptOf.set(key, [...(this.keptOf.get(key) ?? []), { count, until }]);
  }

  /** The store is not what it was. */
  restored(): void {
    this.keptOf.clear();
    this.tokens.clear();
  }

  fail(message: string): void {
    this.broken.push(`${this.trueTime().toFixed(1)}: ${message}`);
  }
}

function textOf({ process, validUntil, sentAt, ttl }: Tenure): string {
  const left = process.reaches(validUntil) - process.time.now;
  return `speed ${process.speed.toFixed(4)}, ${left.toFixed(1)} of ${ttl} ms, since ${sentAt.toFixed(1)}`;
}
