import type { Entry } from '../history/entry.js';
import { earlyLoss } from './early-loss.js';
import { fence } from './fence.js';
import { idleKey } from './idle-key.js';
import { latch } from './latch.js';
import { lostUpdate } from './lost-update.js';
import { nothingLeft } from './nothing-left.js';
import type { Facts, Oracle, Violation } from './oracle.js';
import { order } from './order.js';
import { overlap } from './overlap.js';
import { patience } from './patience.js';
import { tokens } from './tokens.js';
import { trouble } from './trouble.js';

const ALL: readonly Oracle[] = [order, overlap, lostUpdate, fence, tokens, earlyLoss, patience, idleKey, latch, nothingLeft, trouble];

/** Finds what all oracles find, in the order of time. */
export function judge(history: readonly Entry[], facts: Facts): Violation[] {
  return ALL.flatMap((oracle) => oracle(history, facts)).sort((a, b) => a.at - b.at);
}
