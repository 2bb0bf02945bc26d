import type { Entry } from '../history/entry.js';
import { select } from '../history/read.js';
import type { Leftover } from '../stores/store.js';
import type { Oracle, Violation } from './oracle.js';
import { Standstills } from './windows.js';

const SLACK = 500;

/** G7: after the end nothing is left in the store but what expires by itself, and nothing in a worker. Closing has its bound. */
export const nothingLeft: Oracle = (history, { lossy, leftovers }) => {
  const end = history.at(-1)?.t ?? 0;
  const standstills = new Standstills(history);
  const closed = new Map(select(history, 'closed').map(({ w, t }) => [w, t]));
  const late = select(history, 'closing').flatMap(({ t, w, bound }) => {
    const deadline = standstills.putOff(w, t, t + bound + SLACK);
    const time = closed.get(w);
    if (time !== undefined && time <= deadline) return [];
    return [violation(deadline, `${w} is not closed within ${bound} ms${time === undefined ? ', nor later' : ''}`)];
  });
  const inWorkers = select(history, 'left').flatMap(({ t, w, resources, listeners }) => [
    ...resources.map((what) => violation(t, `${w} still has ${what}`)),
    ...listeners.map((what) => violation(t, `${w}: the lent client still has listeners of ${what}`)),
  ]);
  const refused = refusedOwners(history);
  // That somebody has left a queue is written lazily, and may be lost with the server.
  const forgets = lossy || select(history, 'fault').some(({ group }) => group === 'restart');
  const inStore = ({ key, what, owners }: Leftover): Violation[] => {
    if (owners?.every((owner) => forgets || refused.has(owner))) return [];
    return [{ ...violation(end, `the store still has ${what}`), key }];
  };
  return [...late, ...inWorkers, ...leftovers.flatMap(inStore)];
};

/** Owners whose request to leave was refused for want of rights: nothing else can take them out of a queue. */
function refusedOwners(history: readonly Entry[]): Set<string> {
  const refusals = select(history, 'event').filter(({ name, detail }) => name === 'unknown' && /NOPERM|denied/.test(detail));
  return new Set(refusals.flatMap(({ detail }) => / of (\S+): /.exec(detail)?.[1] ?? []));
}

function violation(at: number, what: string): Violation {
  return { oracle: 'nothing left', guarantee: 'G7', at, what };
}
