import { randomUUID } from 'node:crypto';
import type { Lifecycle } from '../holding/lifecycle.js';
import { abortedBy } from '../model/errors.js';
import type { LatchChange, LatchDriver, LatchOperation } from '../store/latch-driver.js';
import { onAbort } from '../util/abort.js';
import { LatchRequest, type CallSettings } from './latch-request.js';
import { LatchWatch } from './latch-watch.js';

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
export class LatchCalls {
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
