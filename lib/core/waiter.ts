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
  /** Where it waits, and between whom. */
  line: Waiters | undefined;
  previous: Waiter | undefined;
  next: Waiter | undefined;

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

/** Those who wait, in the order in which they came: a linked list, since a set whose first one leaves again and again looks for its next one ever longer. */
export class Waiters implements Iterable<Waiter> {
  first: Waiter | undefined;
  size = 0;
  private last: Waiter | undefined;

  add(waiter: Waiter): void {
    waiter.line = this;
    waiter.previous = this.last;
    if (this.last) this.last.next = waiter;
    else this.first = waiter;
    this.last = waiter;
    this.size++;
  }

  /** Whether it was there. */
  delete(waiter: Waiter): boolean {
    if (waiter.line !== this) return false;
    const { previous, next } = waiter;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.last = previous;
    waiter.line = waiter.previous = waiter.next = undefined;
    this.size--;
    return true;
  }

  /** As they are now: while it is gone through, some may leave. */
  [Symbol.iterator](): Iterator<Waiter> {
    const all: Waiter[] = [];
    for (let waiter = this.first; waiter; waiter = waiter.next) all.push(waiter);
    return all.values();
  }
}
