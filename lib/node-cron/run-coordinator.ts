import type { Locks } from '../locks.js';

/** A `RunCoordinator` of node-cron 4.6 or later. */
export interface RunCoordinator {
  /**
   * Whether this instance runs the task at this time.
   *
   * @param key the name of the task, and the time for which the run was scheduled.
   * @param ttlMs for how many milliseconds no other instance may run it: the `distributedLease` of the task, by default 30,000.
   * @throws {StoreError} when the store does not answer. node-cron then logs the error and skips the run.
   */
  shouldRun(key: string, ttlMs: number): Promise<boolean>;
}

/** The end of a key: the scheduled time. */
const TIME = /:[^:]*:\d\d:[\d.]+Z$/;

/**
 * For tasks of node-cron with `distributed: true`: of all instances, one runs each scheduled time. The key has that time and not the time of the clock, so
 * the clocks of two instances may differ by as much as the task's `distributedLease`, which may be longer than the time between two runs.
 *
 * A run is not repeated, also if its instance dies. A run that is longer than the time between two may overlap with the next one, on another instance: use
 * a lock inside the task if it must not.
 *
 * @example cron.setRunCoordinator(runCoordinator(locks));
 */
export function runCoordinator(locks: Locks): RunCoordinator {
  return {
    async shouldRun(key, ttlMs) {
      const time = Math.max(ttlMs, 10);
      const times = { keyTimeout: time, minHold: time, maxHold: time };
      const lease = await locks.tryAcquire(`node-cron:${key}`, { ...times, label: key.replace(TIME, '') });
      // The key stays taken for its `minHold`. From now on no process has to do anything for that.
      await lease?.release();
      return lease !== null;
    },
  };
}
