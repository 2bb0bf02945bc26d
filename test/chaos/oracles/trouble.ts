import type { Entry, Said } from '../history/entry.js';
import { select } from '../history/read.js';
import { callsOf, type CallStory } from './calls.js';
import type { Oracle, Violation } from './oracle.js';
import { timesOf } from './windows.js';

/** Rights come back, but a request that was refused may be answered a moment later. */
const AFTERMATH = 1_500;
/** Errors with which a call may end while rights are taken away. */
const REFUSED = /NOPERM|NOAUTH|denied/;

/** No unhandled rejection, no uncaught exception, no warning of Node, no error of the library's own making, no process that ends by itself. */
export const trouble: Oracle = (history) => [
  ...select(history, 'trouble').map(({ t, w, what, detail }) => violation(t, `${w}: ${what}: ${detail}`)),
  ...select(history, 'exit')
    .filter(({ expected }) => !expected)
    .map(({ t, worker, detail }) => violation(t, `${worker} ended: ${detail}`)),
  ...select(history, 'healed')
    .filter(({ failed }) => failed !== undefined)
    .map(({ t, name, failed }) => violation(t, `the fault "${name}" could not be made: ${failed}`)),
  ...wrongErrors(history),
  ...select(history, 'forced')
    .filter(({ result }) => /^(internal|config):/.test(result))
    .map(({ t, id, result }) => violation(t, `${id}, which takes a key away, ended as ${result}`)),
];

function wrongErrors(history: readonly Entry[]): Violation[] {
  const times = timesOf(history, ({ group }) => group === 'rights', AFTERMATH);
  const closing = new Map(select(history, 'closing').map(({ w, t }) => [w, t]));
  return callsOf(history).flatMap((call): Violation[] => {
    const { asked, ended } = call;
    if (!ended || isFair(call, ended, closing)) return [];
    const isRefused = REFUSED.test(ended.error) && times.some(({ from, to }) => from < ended.t && to > asked.t);
    if (ended.outcome === 'final' && isRefused) return [];
    return [{ ...violation(ended.t, `${asked.id} ended as "${ended.outcome}": ${ended.error}`), kind: asked.kind, key: asked.keys[0] }];
  });
}

/** An end that a caller must expect. */
function isFair({ asked, aborting }: CallStory, { outcome, t }: Said<'ended'>, closing: ReadonlyMap<string, number>): boolean {
  if (outcome === 'timeout' || outcome === 'store' || outcome === 'resigned') return true;
  if (outcome === 'aborted') return aborting !== undefined;
  if (outcome === 'shutdown') return (closing.get(asked.w) ?? Infinity) <= t;
  return outcome === 'lost';
}

function violation(at: number, what: string): Violation {
  return { oracle: 'trouble', guarantee: 'G10', at, what };
}
