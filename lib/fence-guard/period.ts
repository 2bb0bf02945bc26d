import { LockConfigError } from '../core/model/errors.js';

const SECONDS: Record<string, number> = { hour: 3600, day: 86_400, week: 604_800 };
const LEAST = 86_400;

/** `'30 days'`, `'36 hours'`, `'2 weeks'`, in seconds. */
export function secondsIn(period: string): number {
  const [, count, unit] = /^(\d{1,6}) (hour|day|week)s?$/.exec(period) ?? [];
  const seconds = Number(count) * (SECONDS[unit ?? ''] ?? NaN);
  if (seconds >= LEAST) return seconds;
  throw new LockConfigError(
    `FenceGuard.prune: "olderThan" must be a number of hours, days or weeks of at least a day, such as "30 days", not "${period}".`,
  );
}
