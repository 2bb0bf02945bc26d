import type { Share } from './driver.js';
import { heldKeys } from './holds.js';
import type { Lease } from './lease.js';
import { PatientCaller } from './patient-caller.js';

/** What one caller asks for. */
export interface AcquireSettings {
  /** Lease length, milliseconds. */
  readonly ttl: number;
  readonly minHold: number;
  readonly maxHold: number | undefined;
  /** Milliseconds to wait; 0: one try. */
  readonly patience: number;
  readonly retryInterval: number;
  readonly fair: boolean;
  /** Of a key that several may hold. */
  readonly share?: Share;
  readonly signal: AbortSignal | undefined;
  /** Whether a body runs under the lease. */
  readonly guardsBody: boolean;
}

/** How many holders in a row, and for how many milliseconds, a process keeps a key that others may want. */
export type LocalQueueLimits = Readonly<Record<'handOvers' | 'time', number>>;

/** One caller who waits. It ends with a lease, or with why there is none. */
export class Waiter extends PatientCaller<AcquireSettings> {
  /** What its call chain holds already. */
  readonly holding = heldKeys();
  isWaiting = false;
  /** Its patience is over, but for the try that is under way. */
  isLate = false;

  constructor(
    settings: AcquireSettings,
    readonly resolve: (lease: Lease) => void,
    readonly reject: (error: unknown) => void,
  ) {
    super(settings);
  }

  override get isOverdue(): boolean {
    return this.isLate || super.isOverdue;
  }
}

/** Those who wait, in the order in which they came. A lone one needs no more than a field. */
export class Waiters implements Iterable<Waiter> {
  first: Waiter | undefined;
  private others: Set<Waiter> | undefined;

  get size(): number {
    return this.first ? 1 + (this.others?.size ?? 0) : 0;
  }

  add(waiter: Waiter): void {
    if (this.first) (this.others ??= new Set()).add(waiter);
    else this.first = waiter;
  }

  /** Whether it was there. */
  delete(waiter: Waiter): boolean {
    if (waiter !== this.first) return this.others?.delete(waiter) ?? false;
    const [next] = this.others ?? [];
    this.first = next;
    if (next) this.others?.delete(next);
    return true;
  }

  /** As they are now: while it is gone through, some may leave. */
  *[Symbol.iterator](): Iterator<Waiter> {
    if (!this.first) return;
    yield* [this.first, ...(this.others ?? [])];
  }
}
