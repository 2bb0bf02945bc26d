import type { Entry, Said } from '../history/entry.js';
import { select } from '../history/read.js';

export interface Span {
  from: number;
  to: number;
}

/** When faults were at work, each from its beginning until `after` ms behind its end. */
export function timesOf(history: readonly Entry[], matches: (fault: Said<'fault'>) => boolean, after: number): Span[] {
  const spans = new Map<number, Span>();
  const end = history.at(-1)?.t ?? 0;
  for (const entry of history) {
    if (entry.e === 'fault' && matches(entry)) spans.set(entry.n, { from: entry.t, to: end });
    const span = entry.e === 'healed' ? spans.get(entry.n) : undefined;
    if (span) span.to = entry.t + after;
  }
  return [...spans.values()];
}

/** ms for which what an operator has asked for may still be done, if nobody was there to hear the answer */
const UNHEARD = 10_000;

/** When a key was taken from its holder by an operator, or may have been, and for how long it was then kept from all others. */
export function forcesOf(history: readonly Entry[], key: string): (Span & { keptUntil: number })[] {
  const answers = new Map(select(history, 'forced').map((entry) => [entry.id, entry]));
  return select(history, 'forcing')
    .filter((entry) => entry.key === key)
    .map(({ id, t, grace, keepFor }) => {
      const answer = answers.get(id);
      const isKnown = answer !== undefined && /^(free|gave back|forced|changed)$/.test(answer.result);
      const to = isKnown ? answer.t : t + grace + UNHEARD;
      return { from: t, to, keptUntil: isKnown && answer.result !== 'forced' ? to : to + keepFor };
    });
}

/** Returns what is left of a span without the others, in order. */
export function without({ from, to }: Span, others: readonly Span[]): Span[] {
  const left: Span[] = [];
  let start = from;
  for (const other of [...others].sort((a, b) => a.from - b.from)) {
    if (other.to <= start || other.from >= to) continue;
    if (other.from > start) left.push({ from: start, to: other.from });
    start = Math.max(start, other.to);
  }
  if (start < to) left.push({ from: start, to });
  return left;
}

/** For how long each worker stood still, and the controller, through whose proxies all replies go: as they measured themselves. */
export class Standstills {
  private readonly spans = new Map<string, Span[]>();

  constructor(history: readonly Entry[]) {
    for (const entry of history) {
      if (entry.e !== 'lag') continue;
      const spans = this.spans.get(entry.w) ?? [];
      spans.push({ from: entry.t - entry.ms, to: entry.t });
      this.spans.set(entry.w, spans);
    }
  }

  /** The deadline of something that began at `from`, put off by all standstills before it. */
  putOff(worker: string, from: number, deadline: number): number {
    let late = deadline;
    const spans = [...(this.spans.get(worker) ?? []), ...(this.spans.get('chaos') ?? [])].sort((a, b) => a.from - b.from);
    for (const span of spans) if (span.to > from && span.from <= late) late += span.to - span.from;
    return late;
  }
}
