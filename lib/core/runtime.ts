import { LockAbortedError, type LockLostError } from './errors.js';
import type { LockEventEmitter } from './events.js';

/** What the runtime knows of a lease that nobody has released yet. */
export interface OpenLease {
  /** Whether a body runs under it, as opposed to a bare lease that its holder releases. */
  readonly guardsBody: boolean;
  abort(reason: LockLostError): void;
  release(): Promise<boolean>;
}

/** What all locks over one store share: who holds, what still runs in the background, and whether they are being closed. */
export class LockRuntime {
  readonly held = new Set<OpenLease>();
  private readonly background = new Set<Promise<void>>();
  private readonly stop = new AbortController();
  private idle: (() => void) | undefined;
  private isClosed = false;

  constructor(readonly events: LockEventEmitter) {}

  /** Aborts when nobody may wait any more; free keys are still given. */
  get stopping(): AbortSignal {
    return this.stop.signal;
  }

  stopWaiting(): void {
    this.stop.abort();
  }

  /** From now on nothing is given. */
  close(): void {
    this.stopWaiting();
    this.isClosed = true;
  }

  assertOpen(key: string): void {
    if (this.isClosed) throw new LockAbortedError(`Cannot acquire "${key}": the locks are closed.`, { key, reason: 'shutdown' });
  }

  opened(lease: OpenLease): void {
    this.held.add(lease);
  }

  ended(lease: OpenLease): void {
    this.held.delete(lease);
    if (this.idle && !this.hasBodies()) this.idle();
  }

  /** Resolves when no guarded body runs any more. */
  async drained(): Promise<void> {
    if (this.hasBodies()) await new Promise<void>((resolve) => (this.idle = resolve));
  }

  private hasBodies(): boolean {
    for (const lease of this.held) if (lease.guardsBody) return true;
    return false;
  }

  /** Keeps account of clean-up that nobody waits for. */
  inBackground(work: Promise<void>): void {
    const tracked = work.finally(() => this.background.delete(tracked));
    this.background.add(tracked);
  }

  async backgroundEnded(): Promise<void> {
    await Promise.allSettled(this.background);
  }
}
