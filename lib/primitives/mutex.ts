import type { CheckReply, LeaseDriver } from '../core/store/lease-driver.js';
import { asStoreError } from '../core/model/errors.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { ResolvedOptions } from '../core/model/options.js';
import { StoreLock } from './store-lock.js';

/** One holder at a time, in all processes that share the store. */
export class Mutex extends StoreLock {
  /** @internal Use {@link Locks.mutex}. */
  constructor(queues: LockQueues, driver: LeaseDriver, key: string, defaults: ResolvedOptions) {
    super(queues, driver, key, defaults);
  }

  /** @internal What the store knows of the key. */
  async check(): Promise<CheckReply> {
    try {
      return await this.driver.check({ key: this.key, owner: 'nobody' });
    } catch (cause) {
      throw asStoreError(cause, this.key);
    }
  }

  /** @internal Whether this call chain holds the key. */
  get isHeldHere(): boolean {
    return this.held() !== undefined;
  }
}
