import type { KeyReport } from '../core/model/key-report.js';
import { processOf } from '../core/model/owner.js';
import { duration } from '../core/util/clock.js';
import type { Deadlock } from '../operate/wait-graph.js';
import type { PageAlarm, Row } from './dashboard.protocol.js';

/** Milliseconds, as in the rule DistributedLockWaitIsStuck for Prometheus. */
const STUCK = 60_000;
/** Holders that are named. */
const NAMED = 3;

/**
 * A key whose first waiter has waited for too long is an alarm, whether or not its holder answers.
 *
 * @param hears whether the processes of the store get questions.
 */
export function waitAlarm(row: Row, { holders, holderCount }: KeyReport, time: number, hears: boolean): PageAlarm | undefined {
  const { key, store, waiters, waitingSince, kind, permits } = row;
  if (waiters === 0 || waitingSince === null || time - waitingSince < STUCK || kind === 'leader election') return undefined;
  const all = holders.map(({ owner, report, since, phase, remaining }) => {
    const name = `${report?.label === undefined ? '' : `${report.label} of `}${processOf(owner)}`;
    if (phase === 'kept') return `it is kept for ${remaining === null ? 'ever' : `${duration(remaining)} more`}, by ${name}`;
    const age = since === null ? '' : ` for ${duration(time - since.getTime())}`;
    return `${name} holds it${age}${hears ? ` and ${report ? 'answers' : 'does not answer'}` : ''}`;
  });
  // A process may have several permits.
  const who = [...new Set(all)].slice(0, NAMED);
  const others = holderCount - all.filter((each) => who.includes(each)).length;
  if (others > 0) who.push(`${others} more hold it`);
  const size = permits === null ? '' : ` for one of ${permits} permits`;
  const wait = `${waiters} ${waiters === 1 ? 'waits' : 'wait'}${size}, the first for ${duration(time - waitingSince)}`;
  return { kind: 'wait', text: `${key}: ${wait}; ${who.join(', ') || 'nobody holds it'}`, row: { store, key } };
}

export function deadlockAlarm({ keys, members, endsIn, advice }: Deadlock, store: string, nameOf: (key: string) => string): PageAlarm {
  const who = members.map(({ label, holds, waitsFor, ...of }) => {
    const caller = `${label === undefined ? '' : `${label} of `}${processOf(of)}`;
    return `${caller} holds ${holds.map(nameOf).join(', ')} and waits for ${nameOf(waitsFor)}`;
  });
  const end = endsIn === null ? 'No wait of them ends.' : `The first wait ends in ${duration(endsIn)}.`;
  const text = `Deadlock: ${who.join('; ')}. ${end} Take one of the keys away to end it. ${advice}`;
  return { kind: 'deadlock', text, row: { store, key: nameOf(keys[0]!) } };
}
