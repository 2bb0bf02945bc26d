import type { Entry, Said } from '../history/entry.js';
import { select } from '../history/read.js';
import { callsOf, type CallStory } from './calls.js';
import type { Oracle, Violation } from './oracle.js';
import { timesOf } from './windows.js';

/** Rights and clients come back, but a request that was refused may be answered a moment later. */
const AFTERMATH = 1_500;
/** Errors with which faults of a group may end a call. */
const REFUSALS: [group: string, RegExp][] = [
  ['rights', /NOPERM|NOAUTH|denied/],
  ['lent', /client is closed/],
];
/** Errors that the library must log under faults of a group: it cannot connect a client that it was given. */
const ERRORS: [group: string, RegExp][] = [['lent', /the client that the store was given has ended by itself/]];

/** No unhandled rejection, no uncaught exception, no warning of Node, no error of the library's own making, no process that ends by itself. */
export const trouble: Oracle = (history) => [
  ...select(history, 'trouble')
    .filter((entry) => !isExpected(history, entry))
    .map(({ t, w, what, detail }) => violation(t, `${w}: ${what}: ${detail}`)),
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

function isExpected(history: readonly Entry[], { t, what, detail }: Said<'trouble'>): boolean {
  const said = what === 'logged' ? within(history, ERRORS).filter(({ text }) => text.test(detail)) : [];
  return said.some(({ times }) => times.some(({ from, to }) => from < t && t < to));
}

/** The texts, each with the times at which its faults struck. */
function within(history: readonly Entry[], texts: readonly (readonly [group: string, text: RegExp])[]) {
  return texts.map(([group, text]) => ({ text, times: timesOf(history, (fault) => fault.group === group, AFTERMATH) }));
}

function wrongErrors(history: readonly Entry[]): Violation[] {
  const refusals = within(history, REFUSALS);
  const closing = new Map(select(history, 'closing').map(({ w, t }) => [w, t]));
  return callsOf(history).flatMap((call): Violation[] => {
    const { asked, ended } = call;
    if (!ended || isFair(call, ended, closing)) return [];
    const isRefused = refusals.some(
      ({ text, times }) => text.test(ended.error) && times.some(({ from, to }) => from < ended.t && to > asked.t),
    );
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
