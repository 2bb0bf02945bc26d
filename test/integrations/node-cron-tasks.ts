import type { Locks } from 'nestjs-distributed-lock/core';
// #region run-coordinator
import { runCoordinator } from 'nestjs-distributed-lock/node-cron';
import cron, { type ScheduledTask, type TaskFn } from 'node-cron';

export function scheduleDigest(locks: Locks, sendDigest: TaskFn): ScheduledTask {
  cron.setRunCoordinator(runCoordinator(locks));
  return cron.schedule('* * * * * *', sendDigest, { name: 'digest', distributed: true, distributedLease: 60_000 });
}
// #endregion
