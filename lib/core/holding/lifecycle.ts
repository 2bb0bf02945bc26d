import { LockAbortedError, type LockLostError } from '../model/errors.js';
import type { LockEventEmitter } from '../model/events.js';
import { LinkedEntry, LinkedList } from '../util/linked-list.js';

/** What the runtime knows of a lease that nobody has released yet. */
export interface OpenLease {
  /** Whether a body runs under it, as opposed to a bare lease that its holder releases. */
  readonly guardsBody: boolean;
  /** Whether its `maxHold` is over. */
  readonly isOver: boolean;
  abort(reason: LockLostError): void;
  /** Releases it over its holder's head: for the holder it is lost. */
  revoke(reason: LockLostError): Promise<void>;
}

/** A lease among those that are held. */
export class HeldLease extends LinkedEntry<HeldLease> {
  constructor(readonly lease: OpenLease) {
    super();
  }
}

/** What all locks over one store share: who holds, what still runs in the background, and whether they are being closed. */
export class Lifecycle {
  readonly held = new LinkedList<HeldLease>();
  private readonly background = new Set<Promise<void>>();
  private readonly stop = new AbortController();
  private readonly end = new AbortController();
  private acquiring = 0;
  private onChange: (() => void)[] = [];

  constructor(
    readonly events: LockEventEmitter,
    /** Milliseconds within which the store answers each request, or rejects it. */
    readonly requestTimeout: number,
  ) {}

  /** Aborts when nobody may wait any more; free keys are still given. */
  get stopping(): AbortSignal {
    return this.stop.signal;
  }

  /** Aborts when nothing is given any more. */
  get closed(): AbortSignal {
    return this.end.signal;
  }

  stopWaiting(): void {
    this.stop.abort();
  }

  /** From now on nothing is given. */
  close(): void {
    this.stopWaiting();
    this.end.abort();
  }

  assertOpen(key: string): void {
    if (this.end.signal.aborted) throw new LockAbortedError(`Cannot acquire "${key}": the locks are closed.`, { key, reason: 'shutdown' });
  }

  opened(lease: OpenLease): HeldLease {
    const held = new HeldLease(lease);
    this.held.add(held);
    return held;
  }

  ended(held: HeldLease): void {
    this.held.delete(held);
    this.changed();
  }

  acquireBegins(): void {
    this.acquiring++;
  }

  acquireEnds(): void {
    this.acquiring--;
    this.changed();
  }

  /** Resolves when no guarded body runs any more and none is about to. */
  drained(): Promise<void> {
    return this.when(() => this.acquiring === 0 && ![...this.held].some(({ lease }) => lease.guardsBody));
  }

  /** Keeps account of clean-up that nobody waits for. */
  inBackground(work: Promise<void>): void {
    const tracked = work.finally(() => {
      this.background.delete(tracked);
      this.changed();
    });
    this.background.add(tracked);
  }

  /** Resolves when nothing is sent to the store any more. */
  quiet(): Promise<void> {
    return this.when(() => this.acquiring === 0 && this.background.size === 0);
  }

  private async when(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.onChange.push(resolve));
  }

  private changed(): void {
    const waiting = this.onChange;
    if (waiting.length === 0) return;
    this.onChange = [];
    for (const resolve of waiting) resolve();
  }
}
