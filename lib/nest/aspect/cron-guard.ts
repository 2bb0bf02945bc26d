import { LockTimeoutError } from '../../core/model/errors.js';
import type { MethodLock } from './lock-plan.js';

/** The lock of a {@link CronLock}: it also logs which instance runs a tick, and which skip it. */
export function cronGuard(lock: MethodLock, label: string, debug: (message: string) => void): MethodLock {
  return {
    async take(options, guardsBody) {
      try {
        return await lock.take(options, guardsBody);
      } catch (error) {
        if (error instanceof LockTimeoutError) debug(`${label} is skipped: ${error.holder ?? 'another instance'} has it.`);
        throw error;
      }
    },
    holding(lease, work) {
      debug(`${label} runs here.`);
      return lock.holding(lease, work);
    },
  };
}
