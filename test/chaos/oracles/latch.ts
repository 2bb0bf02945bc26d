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
  const times = new Times(history);
  return [
    ...operations.flatMap((operation) => lateAnswer(operation, times)),
    ...(lossy ? [] : [...byKey.values()].flatMap((ofKey) => ofKey.flatMap((operation) => judgeAwait(operation, ofKey, times)))),
    ...operations.flatMap(wrongError),
  ];
};

/** What is asked of a history again and again. */
class Times {
  readonly standstills: Standstills;
  readonly end: number;
  /** When each worker was killed, or closed its locks: it waits no more. */
  readonly gone = new Map<string, number>();
  readonly last = new Map<string, number>();
  private readonly faults = new Map<number, Span[]>();

  constructor(private readonly history: readonly Entry[]) {
    this.standstills = new Standstills(history);
    this.end = history.at(-1)?.t ?? 0;
    for (const entry of history) {
      this.last.set(entry.w, entry.t);
      const worker = entry.e === 'killed' ? entry.worker : entry.e === 'closing' ? entry.w : undefined;
      if (worker !== undefined && !this.gone.has(worker)) this.gone.set(worker, entry.t);
    }
  }

  faultsFor(requestTimeout: number): Span[] {
    const known = this.faults.get(requestTimeout) ?? timesOf(this.history, () => true, RECOVERY + LOST_REQUESTS * requestTimeout);
    this.faults.set(requestTimeout, known);
    return known;
  }
}

function judgeAwait({ asked, answer }: Operation, ofKey: readonly Operation[], times: Times): Violation[] {
  if (asked.op !== 'await') return [];
  const sets = ofKey.filter(({ asked: { op } }) => op === 'set').map(({ asked: set }) => set);
  const sumOf = (matches: (set: Said<'latch'>) => boolean): number => sets.filter(matches).reduce((sum, { count }) => sum + count, 0);
  const downs = ofKey.filter(({ asked: { op } }) => op === 'down');
  if (answer?.result === 'open') {
    const begun = downs.filter(({ asked: { t } }) => t < answer.t).length;
    const needed = sumOf(({ round }) => round <= asked.round);
    if (begun < needed) return [violation(asked, 'G1', answer.t, `${asked.id} goes on after ${begun} of ${needed} counts`)];
  }
  const end = answer?.t ?? times.gone.get(asked.w) ?? times.end;
  const bound = 2 * asked.retryInterval + SLACK;
  const faults = times.faultsFor(asked.requestTimeout);
  const late = openTimes(sets, downs, times.end)
    .map(({ from, to }) => ({ from: Math.max(from, asked.t), to: Math.min(to, end) }))
    .flatMap((open) => without(open, faults))
    .find(({ from, to }) => to > times.standstills.putOff(asked.w, from, from + bound));
  return late ? [violation(asked, 'G8', late.from + bound, `${asked.id} does not go on after the last count`)] : [];
}

/** When the latch was open for sure: from its last count until somebody set it again. A wait that sees only the next round goes on waiting. */
function openTimes(sets: readonly Said<'latch'>[], downs: readonly Operation[], end: number): Span[] {
  const done = downs.flatMap(({ answer }) => (answer && /^\d+$/.test(answer.result) ? [answer.t] : [])).sort((a, b) => a - b);
  let needed = 0;
  return [...sets]
    .sort((a, b) => a.t - b.t)
    .flatMap(({ count }, i, inOrder) => {
      needed += count;
      const from = done[needed - 1];
      const to = inOrder[i + 1]?.t ?? end;
      return from !== undefined && from < to ? [{ from, to }] : [];
    });
}

function lateAnswer({ asked, answer }: Operation, { standstills, last }: Times): Violation[] {
  const { t, w, patience, requestTimeout } = asked;
  const deadline = t + patience + requestTimeout + SLACK;
  if ((answer?.t ?? Infinity) <= deadline) return [];
  const late = standstills.putOff(w, t, deadline);
  if ((answer?.t ?? Infinity) <= late || last.get(w)! <= late) return [];
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
