import { randomUUID } from 'node:crypto';
import type { Lifecycle } from '../core/holding/lifecycle.js';
import { abortedBy, closed, stopped, type LockError } from '../core/model/errors.js';
import type { LatchChange, LatchDriver, LatchOperation } from '../core/store/latch-driver.js';
import { onAbort } from '../core/util/abort.js';
import { now } from '../core/util/clock.js';
import { RepeatedRequest } from '../core/util/repeated-request.js';
import { pollDelay } from '../core/waiting/backoff.js';
import { LatchWatch } from './latch-watch.js';

export interface CallSettings {
  /** Milliseconds for which to ask again while the store does not answer; 0: one try. */
  readonly patience: number;
  readonly retryInterval: number;
  readonly signal: AbortSignal | undefined;
}

/** One caller's request, which ends with the first answer of the store. It is sent again only if there was no answer. */
class LatchRequest<T> extends RepeatedRequest<T> {
  private readonly startedAt = now();
  protected answered!: (reply: T) => void;
  private reject!: (error: LockError) => void;
  /** The error of the last request. */
  private error: LockError | undefined;

  /** @param knownFor milliseconds for which the store recognises a repeat. After half of them none is sent, because it takes time to arrive. */
  constructor(
    private readonly runtime: Lifecycle,
    private readonly key: string,
    private readonly settings: CallSettings,
    private readonly request: () => Promise<T>,
    private readonly knownFor = Infinity,
  ) {
    super();
  }

  async run(): Promise<T> {
    const { runtime, key } = this;
    const { signal } = this.settings;
    if (signal?.aborted) throw abortedBy(signal, key);
    runtime.assertOpen(key);
    runtime.begins('acquire');
    const result = new Promise<T>((resolve, reject) => {
      this.answered = resolve;
      this.reject = reject;
    });
    const forget = [
      onAbort(runtime.stopping, () => this.isAsking || this.reject(stopped(key))),
      onAbort(runtime.closed, () => this.reject(closed(key))),
    ];
    if (signal) forget.push(onAbort(signal, () => this.reject(abortedBy(signal, key))));
    this.ask();
    try {
      return await result;
    } finally {
      this.stop();
      for (const each of forget) each();
      runtime.ends('acquire');
    }
  }

  /** A timer can fire long after its time. */
  protected send(): Promise<T> {
    return this.error && now() - this.startedAt > this.knownFor / 2 ? Promise.reject(this.error) : this.request();
  }

  protected unanswered(cause: unknown): void {
    const { key, runtime, settings } = this;
    const error = (this.error = runtime.errorOf(cause, key, this.sentAt));
    const left = Math.min(settings.patience, this.knownFor / 2) - (now() - this.startedAt);
    if (!error.transient || left <= 0) this.reject(error);
    else if (runtime.stopping.aborted) this.reject(stopped(key, error));
    else this.askIn(Math.min(pollDelay(this.attempts, settings.retryInterval, -1), left));
  }
}

/**
 * Gives each change of a latch an id. Sequential changes share a line, so that a store remembers only as many changes as are made at the same
 * time.
 *
 * After "Implementing Linearizability at Large Scale and Low Latency" (RIFL, Lee et al., SOSP 2015), without its leases.
 */
class OperationIds {
  private readonly name = randomUUID();
  private readonly free: number[] = [];
  private lines = 0;
  private last = 0;

  /** Runs the work under a new operation. A repeat that arrives after the next operation of its line changes nothing. */
  async run<T>(work: (operation: LatchOperation) => Promise<T>): Promise<T> {
    const line = this.free.pop() ?? this.lines++;
    try {
      return await work({ line: `${this.name}:${line}`, number: ++this.last });
    } finally {
      this.free.push(line);
    }
  }
}

/** The calls of one {@link Locks} to its latches. */
export class LatchDriverCalls {
  private readonly operations = new OperationIds();
  private readonly watches = new Map<string, LatchWatch>();

  constructor(
    private readonly runtime: Lifecycle,
    readonly driver: LatchDriver,
  ) {
    onAbort(runtime.stopping, () => this.watches.forEach((watch) => watch.stopWaiting()));
    onAbort(runtime.closed, () => this.watches.forEach((watch) => watch.close()));
  }

  /** A question, which changes nothing. */
  ask<T>(key: string, settings: CallSettings, send: () => Promise<T>): Promise<T> {
    return new LatchRequest(this.runtime, key, settings, send).run();
  }

  /** A change, which the store makes once, however often it is sent. */
  change<T>(key: string, settings: CallSettings, ttl: number, send: (change: LatchChange) => Promise<T>): Promise<T> {
    const { runtime } = this;
    const knownFor = Math.min(ttl, 2 * (settings.patience + runtime.requestTimeout));
    return this.operations.run((operation) => {
      const change = { key, ttl, operation, knownFor };
      return new LatchRequest(runtime, key, settings, () => send(change), knownFor).run();
    });
  }

  /** A wait until the latch is counted down. */
  async wait(key: string, settings: CallSettings): Promise<void> {
    const { runtime, driver, watches } = this;
    const { signal } = settings;
    if (signal?.aborted) throw abortedBy(signal, key);
    runtime.assertOpen(key);
    let watch = watches.get(key);
    if (!watch) watches.set(key, (watch = new LatchWatch(runtime, driver, key, () => watches.delete(key))));
    return watch.join(settings);
  }
}
