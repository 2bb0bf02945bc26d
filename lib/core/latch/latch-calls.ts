import type { Lifecycle } from '../holding/lifecycle.js';
import { abortedBy } from '../model/errors.js';
import type { LatchChange, LatchDriver } from '../store/latch-driver.js';
import { onAbort } from '../util/abort.js';
import { LatchRequest, type CallSettings } from './latch-request.js';
import { LatchWatch } from './latch-watch.js';
import { OperationIds } from './operation-ids.js';

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
