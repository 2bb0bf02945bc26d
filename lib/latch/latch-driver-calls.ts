import { randomUUID } from 'node:crypto';
import type { Lifecycle } from '../core/holding/lifecycle.js';
import { abortedBy, closed, stopped, type LockError } from '../core/model/errors.js';
import type { LatchChange, LatchDriver, LatchOperation } from '../core/store/latch-driver.js';
import { onAbort } from '../core/util/abort.js';
import { now } from '../core/util/clock.js';
import { repeat } from '../core/util/repeated-request.js';
import { pollDelay } from '../core/waiting/backoff.js';
import { LatchWatch } from './latch-watch.js';

export interface CallSettings {
  /** Milliseconds for which to ask again while the store does not answer; 0: one try. */
  readonly patience: number;
  readonly retryInterval: number;
  readonly signal: AbortSignal | undefined;
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

  /**
   * One caller's request, which ends with the first answer of the store. It is sent again only if there was no answer.
   *
   * @param knownFor milliseconds for which the store recognises a repeat. After half of them none is sent, because it takes time to arrive.
   */
  async ask<T>(key: string, settings: CallSettings, send: () => Promise<T>, knownFor = Infinity): Promise<T> {
    const { runtime } = this;
    const { patience, retryInterval, signal } = settings;
    if (signal?.aborted) throw abortedBy(signal, key);
    runtime.assertOpen(key);
    runtime.begins('acquire');
    const startedAt = now();
    const ends: (() => void)[] = [];
    const result = new Promise<T>((resolve, reject) => {
      /** The error of the last request. */
      let error: LockError | undefined;
      const request = repeat<T>({
        // A timer can fire long after its time.
        send: () => (error && now() - startedAt > knownFor / 2 ? Promise.reject(error) : send()),
        answered: resolve,
        unanswered(cause) {
          error = runtime.errorOf(cause, key, request.sentAt);
          const left = Math.min(patience, knownFor / 2) - (now() - startedAt);
          if (!error.transient || left <= 0) reject(error);
          else if (runtime.stopping.aborted) reject(stopped(key, error));
          else request.askIn(Math.min(pollDelay(request.attempts, retryInterval, -1), left));
        },
      });
      ends.push(
        () => request.stop(),
        onAbort(runtime.stopping, () => request.isAsking || reject(stopped(key))),
        onAbort(runtime.closed, () => reject(closed(key))),
      );
      if (signal) ends.push(onAbort(signal, () => reject(abortedBy(signal, key))));
      request.ask();
    });
    try {
      return await result;
    } finally {
      for (const end of ends) end();
      runtime.ends('acquire');
    }
  }

  /** A change, which the store makes once, however often it is sent. */
  change<T>(key: string, settings: CallSettings, ttl: number, send: (change: LatchChange) => Promise<T>): Promise<T> {
    const { runtime } = this;
    const knownFor = Math.min(ttl, 2 * (settings.patience + runtime.requestTimeout));
    return this.operations.run((operation) => {
      const change = { key, ttl, operation, knownFor };
      return this.ask(key, settings, () => send(change), knownFor);
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
