import type { Random } from '../random.js';
import type { Fault, Strike } from './fault.js';

/** ms: faults come in bursts, and between two of them is time enough for waiters to show that they go on. */
const BURST = [2_000, 4_000] as const;
const CALM = [2_500, 6_000] as const;
const GAP = [50, 700] as const;
/** ms between two faults that concern all workers */
const WIDE_GAP = [300, 2_500] as const;

/** When which fault strikes. All faults of a bag are drawn before one comes again. */
export function plan(random: Random, faults: readonly Fault[], length: number, slots: number): Strike[] {
  const strikes: Strike[] = [];
  let bag: Fault[] = [];
  let wideEnd = 0;
  let lastEnd = -Infinity;
  let burstEnd = 500 + random.int(...BURST);
  for (let at = 500; faults.length > 0; at += random.int(...GAP)) {
    if (at > burstEnd) {
      at += random.int(...CALM);
      burstEnd = at + random.int(...BURST);
    }
    if (bag.length === 0) bag = random.shuffle(faults);
    const fault = bag.pop()!;
    const duration = random.int(...fault.duration);
    if (fault.calm !== undefined) at = Math.max(at, lastEnd + fault.calm);
    if (fault.isWide) {
      at = Math.max(at, wideEnd);
      wideEnd = at + duration + random.int(...WIDE_GAP);
    }
    if (at + duration > length) {
      if (at > length) break;
      continue;
    }
    lastEnd = Math.max(lastEnd, at + duration);
    strikes.push({ at, fault, slot: random.int(0, slots - 1), duration, extent: random.next() });
  }
  return strikes;
}
