import { onAbort } from '../util/abort.js';
import { abortedBy } from '../model/errors.js';
import type { LatchDriver, LatchOperation } from '../store/latch-driver.js';
import { LatchWatch } from './latch-watch.js';
import { OperationIds } from './operation-ids.js';
import { LatchRequest, type CallSettings } from './latch-request.js';
import type { Lifecycle } from '../holding/lifecycle.js';

/** All that is under way with the latches of one {@link Locks}. */
export class Latches {
  private readonly operations = new OperationIds();
  private readonly watches = new Map<LatchDriver, Map<string, LatchWatch>>();

  constructor(private readonly runtime: Lifecycle) {
    onAbort(runtime.stopping, () => this.each((watch) => watch.stop()));
    onAbort(runtime.closed, () => this.each((watch) => watch.close()));
  }

  /** Asks something that may be asked again. */
  ask<T>(key: string, settings: CallSettings, send: () => Promise<T>): Promise<T> {
    return new LatchRequest(this.runtime, key, settings, send).run();
  }

  /** Asks for a change, which is made once. The store remembers it for `ttl` milliseconds. */
  change<T>(key: string, settings: CallSettings, ttl: number, send: (operation: LatchOperation) => Promise<T>): Promise<T> {
    return this.operations.run((operation) => new LatchRequest(this.runtime, key, settings, () => send(operation), ttl).run());
  }

  async await(driver: LatchDriver, key: string, settings: CallSettings): Promise<void> {
    const { signal } = settings;
    if (signal?.aborted) throw abortedBy(signal, key);
    this.runtime.assertOpen(key);
    return this.watch(driver, key).join(settings);
  }

  private watch(driver: LatchDriver, key: string): LatchWatch {
    let watches = this.watches.get(driver);
    if (!watches) this.watches.set(driver, (watches = new Map<string, LatchWatch>()));
    let watch = watches.get(key);
    if (!watch) watches.set(key, (watch = new LatchWatch(this.runtime, driver, key, () => watches.delete(key))));
    return watch;
  }

  private each(act: (watch: LatchWatch) => void): void {
    for (const watches of this.watches.values()) for (const watch of [...watches.values()]) act(watch);
  }
}
