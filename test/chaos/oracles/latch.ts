import type { Entry, Said } from '../history/entry.js';
import { select } from '../history/read.js';
import { groupBy } from './calls.js';
import type { Oracle, Violation } from './oracle.js';
import { type Span, Standstills, timesOf, without } from './windows.js';

/** ms */
const SLACK = 400;
const RECOVERY = 1_000;
/** What is asked during a fault has no answer, nor has what shows that the connection has gone. */
const LOST_REQUESTS = 2;

interface Operation {
  asked: Said<'latch'>;
  answer?: Said<'latched'>;
}

/** A latch opens when it has been counted down as often as it was set to, not before and not later; each call has its answer in time. */
export const latch: Oracle = (history, { lossy }) => {
  const answers = new Map(select(history, 'latched').map((entry) => [entry.id, entry]));
  const operations = select(history, 'latch').map((asked): Operation => ({ asked, answer: answers.get(asked.id) }));
  const byKey = groupBy(operations, ({ asked }) => asked.key);
  return [
    ...operations.flatMap((operation) => lateAnswer(operation, history)),
    ...(lossy ? [] : [...byKey.values()].flatMap((ofKey) => ofKey.flatMap((operation) => judgeAwait(operation, ofKey, history)))),
    ...operations.flatMap(wrongError),
  ];
};

function judgeAwait({ asked, answer }: Operation, ofKey: readonly Operation[], history: readonly Entry[]): Violation[] {
  if (asked.op !== 'await') return [];
  const sets = ofKey.filter(({ asked: { op } }) => op === 'set').map(({ asked: set }) => set);
  const sumOf = (matches: (set: Said<'latch'>) => boolean): number => sets.filter(matches).reduce((sum, { count }) => sum + count, 0);
  const downs = ofKey.filter(({ asked: { op } }) => op === 'down');
  if (answer?.result === 'open') {
    const begun = downs.filter(({ asked: { t } }) => t < answer.t).length;
    const needed = sumOf(({ round }) => round <= asked.round);
    if (begun < needed) return [violation(asked, 'G1', answer.t, `${asked.id} goes on after ${begun} of ${needed} counts`)];
  }
  // One that was killed, or whose locks were closed, waits no more.
  const gone = history.find(
    (entry) => (entry.e === 'killed' && entry.worker === asked.w) || (entry.e === 'closing' && entry.w === asked.w),
  );
  const end = answer?.t ?? (gone ?? history.at(-1)!).t;
  const bound = 2 * asked.retryInterval + SLACK;
  const faults = timesOf(history, () => true, RECOVERY + LOST_REQUESTS * asked.requestTimeout);
  const standstills = new Standstills(history);
  const late = openTimes(sets, downs, history)
    .map(({ from, to }) => ({ from: Math.max(from, asked.t), to: Math.min(to, end) }))
    .flatMap((open) => without(open, faults))
    .find(({ from, to }) => to > standstills.putOff(asked.w, from, from + bound));
  return late ? [violation(asked, 'G8', late.from + bound, `${asked.id} does not go on after the last count`)] : [];
}

/** When the latch was open for sure: from its last count until somebody set it again. A wait that sees only the next round goes on waiting. */
function openTimes(sets: readonly Said<'latch'>[], downs: readonly Operation[], history: readonly Entry[]): Span[] {
  const done = downs.flatMap(({ answer }) => (answer && /^\d+$/.test(answer.result) ? [answer.t] : [])).sort((a, b) => a - b);
  let needed = 0;
  return [...sets]
    .sort((a, b) => a.t - b.t)
    .flatMap(({ count }, i, inOrder) => {
      needed += count;
      const from = done[needed - 1];
      const to = inOrder[i + 1]?.t ?? history.at(-1)!.t;
      return from !== undefined && from < to ? [{ from, to }] : [];
    });
}

function lateAnswer({ asked, answer }: Operation, history: readonly Entry[]): Violation[] {
  const { t, w, patience, requestTimeout } = asked;
  const deadline = t + patience + requestTimeout + SLACK;
  if ((answer?.t ?? Infinity) <= deadline) return [];
  const last = history.findLast((entry) => entry.w === w)!.t;
  const late = new Standstills(history).putOff(w, t, deadline);
  if ((answer?.t ?? Infinity) <= late || last <= late) return [];
  return [
    violation(asked, 'G9', late, `${asked.id} with a wait timeout of ${patience} ms has its answer ${answer ? 'too late' : 'never'}`),
  ];
}

function wrongError({ asked, answer }: Operation): Violation[] {
  if (!answer || !/^(internal|config):/.test(answer.result)) return [];
  return [violation(asked, 'G10', answer.t, `${asked.id} ended as ${answer.result}`)];
}

function violation({ key }: Said<'latch'>, guarantee: string, at: number, what: string): Violation {
  return { oracle: 'latch', guarantee, kind: 'latch', key, at, what };
}
