import { select } from '../history/read.js';
import { callsOf, type CallStory } from './calls.js';
import type { Oracle } from './oracle.js';
import { Standstills } from './windows.js';

/** ms by which a call may end late on a loaded machine, beside the standstills that its worker measured */
const SLACK = 300;
/** ms in which a worker that goes on after a standstill has noted it */
const TIME_TO_NOTE = 500;

/** G9: a call has its answer when its wait timeout and one requestTimeout are over, and at once when it is aborted. */
export const patience: Oracle = (history) => {
  const standstills = new Standstills(history);
  const closing = new Map(select(history, 'closing').map(({ w, t }) => [w, t]));
  const lastSeen = new Map(history.map(({ w, t }) => [w, t]));
  return callsOf(history).flatMap((call) => {
    const { asked } = call;
    const end = call.granted?.t ?? call.ended?.t ?? Infinity;
    const promised = deadlineOf(call, closing.get(asked.w)) + SLACK;
    if (end <= promised) return [];
    const deadline = standstills.putOff(asked.w, asked.t, promised);
    // A killed worker that was stopped before has nothing to say, or no time to note that it stood still.
    if (end <= deadline || (lastSeen.get(asked.w) ?? 0) <= deadline || end > (call.killed ?? Infinity) - TIME_TO_NOTE) return [];
    const late = end === Infinity ? 'never' : `${(end - deadline).toFixed(0)} ms too late`;
    const patience = asked.patience === null ? 'no wait timeout' : `a wait timeout of ${asked.patience} ms`;
    const what = `${asked.id} with ${patience}${call.aborting ? ', aborted,' : ''} has its answer ${late}`;
    return [{ oracle: 'liveness' as const, guarantee: 'G9', kind: asked.kind, key: asked.keys[0], at: deadline, what }];
  });
};

function deadlineOf({ asked, aborting }: CallStory, closing: number | undefined): number {
  const own = asked.patience === null ? Infinity : asked.t + asked.patience + asked.requestTimeout;
  // A candidate whose last term was lost gives that back before it ends.
  const aborted = aborting ? aborting.t + (asked.kind === 'leader' ? asked.requestTimeout : 0) : Infinity;
  return Math.min(own, aborted, closing === undefined ? Infinity : Math.max(closing, asked.t) + asked.requestTimeout);
}
