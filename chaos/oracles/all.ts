import type { Entry } from '../history/entry.js';
import { fence } from './fence.js';
import { lostUpdate } from './lost-update.js';
import type { Facts, Oracle, Violation } from './oracle.js';
import { overlap } from './overlap.js';
import { tokens } from './tokens.js';

const ALL: readonly Oracle[] = [overlap, lostUpdate, fence, tokens];

/** What all oracles find, in the order of time. */
export function judge(history: readonly Entry[], facts: Facts): Violation[] {
  return ALL.flatMap((oracle) => oracle(history, facts)).sort((a, b) => a.at - b.at);
}
