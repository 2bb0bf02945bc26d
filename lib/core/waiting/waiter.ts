import { AsyncLocalStorage } from 'node:async_hooks';
import type { Share } from '../store/lease-driver.js';
import { heldKeys } from '../holding/call-chain.js';
import type { Lease } from '../holding/lease.js';
import type { Linked, LinkedList } from '../util/linked-list.js';
import { Caller } from './caller.js';

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

/** One caller who waits. It ends with a lease, or with why there is none. */
export class Waiter extends Caller<AcquireSettings> implements Linked<Waiter> {
  /** What its call chain holds already. */
  readonly holding = heldKeys();
  isWaiting = false;
  /** Its patience is over, but for the try that is under way. */
  isLate = false;
  list: LinkedList<Waiter> | undefined;
  previous: Waiter | undefined;
  next: Waiter | undefined;
  private context: (<T>(work: () => T) => T) | undefined;

  constructor(
    settings: AcquireSettings,
    readonly resolve: (lease: Lease) => void,
    readonly reject: (error: unknown) => void,
  ) {
    super(settings);
  }

  /** Those whom it tells of its end later will run in the context of now: in that of the call that waits, and not of one that ends its wait. */
  keepContext(): void {
    this.context = AsyncLocalStorage.snapshot();
  }

  inContext(work: () => void): void {
    if (this.context) this.context(work);
    else work();
  }

  override get isOverdue(): boolean {
    return this.isLate || super.isOverdue;
  }
}
