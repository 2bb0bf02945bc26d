import type { Locks } from 'nestjs-distributed-lock/core';
// #region run-coordinator
import cron, { type RunCoordinator, type ScheduledTask, type TaskFn } from 'node-cron';

/** Lets one of all instances run each scheduled time. */
export const runCoordinator = (locks: Locks): RunCoordinator => ({
  async shouldRun(key, ttl) {
    const times = { keyTimeout: ttl, minHold: ttl, maxHold: ttl };
    // The key is the name of the task, and the time: `digest:2026-11-26T18:00:00.000Z`.
    const label = key.slice(0, -25);
    const lease = await locks.tryAcquire(`node-cron:${key}`, { ...times, label });
    // The key stays taken for its `minHold`. No process has to do anything for that.
    await lease?.release();
    return lease !== null;
  },
});

export function scheduleDigest(locks: Locks, sendDigest: TaskFn): ScheduledTask {
  cron.setRunCoordinator(runCoordinator(locks));
  return cron.schedule('* * * * * *', sendDigest, { name: 'digest', distributed: true, distributedLease: 60_000 });
}
// #endregion
