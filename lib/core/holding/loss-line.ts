import { now } from '../util/clock.js';
import { duration } from '../util/duration.js';
import type { Tenure } from './tenure.js';

/** The log line of a lost lease. The error of its holder says neither how long it was held nor what the store answered meanwhile. */
export function lossLine({ key, turn, unansweredCount, outage }: Tenure, why: string): string {
  const { label, grantedAt } = turn;
  const line = `Lost "${key}"${label === undefined ? '' : ` (${label})`} after ${duration(now() - grantedAt)}: ${why}`;
  if (unansweredCount === 0) return line;
  const renewals = `${line}; ${unansweredCount} ${unansweredCount === 1 ? 'renewal' : 'renewals'} unanswered`;
  return outage ? `${renewals}, last error: ${outage.message}` : renewals;
}
