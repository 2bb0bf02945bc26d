import type { Entry, Kind } from '../history/entry.js';
import type { Leftover } from '../stores/store.js';
import type { FencedTotals } from '../worker/fenced-counter.js';

export const ORACLES = [
  'order',
  'overlap',
  'lost update',
  'fence',
  'tokens',
  'rows',
  'early loss',
  'liveness',
  'latch',
  'nothing left',
  'trouble',
] as const;
export type OracleName = (typeof ORACLES)[number];

/** Facts that are known besides the history when all is over. */
export interface Facts {
  /** The store was made to forget, or its clock jumped: then only what the fencing token guards must be right. */
  lossy: boolean;
  /** The store sees that a process is dead, and takes its keys from it. */
  knowsDeaths?: boolean;
  fenced: FencedTotals[];
  /** what was left in the store */
  leftovers: Leftover[];
}

export interface Violation {
  oracle: OracleName;
  /** the promise that is broken, such as `G2` */
  guarantee: string;
  kind?: Kind;
  key?: string;
  /** when, on the clock of the history */
  at: number;
  what: string;
}

/** A pure function: what the history shows that must not be. */
export type Oracle = (history: readonly Entry[], facts: Facts) => Violation[];
