import type { Scene } from '../run/scene.js';
import type { Stage } from '../stores/store.js';

export const SURVIVABLE = [
  ...(['process', 'net', 'server', 'rights', 'memory', 'restart', 'failover', 'sentinel', 'files', 'clock', 'takeover'] as const),
] as const;
/** The store forgets, or its clock jumps: only the fencing token helps. */
export const FENCE_ONLY = ['loss', 'clock-server', 'clock-member'] as const;
export const GROUPS = [...SURVIVABLE, ...FENCE_ONLY] as const;
export type Group = (typeof GROUPS)[number];

export function isLossy(group: string): boolean {
  return (FENCE_ONLY as readonly string[]).includes(group);
}

/** The clock of a quorum's member is set, and set back. */
export const JUMPED = 'the wall clock of one member jumps';

/** A store without a clock comes back with old data, after all who use it have noticed that it was away. */
export const RESTORED = 'server comes back with old data';

/** A member of a quorum forgets what it has granted. */
export const EMPTIED = 'member killed, and restarted empty';

/** One fault at one time, as the seed plans it. */
export interface Strike {
  /** ms after the beginning */
  at: number;
  fault: Fault;
  /** the worker that it hits, if it hits one */
  slot: number;
  /** ms until it is healed */
  duration: number;
  /** from 0 to 1: whatever else the fault has to choose */
  extent: number;
}

export interface Fault {
  readonly name: string;
  readonly group: Group;
  /** It hits the server or all workers: one at a time. */
  readonly isWide?: boolean;
  /** ms before it in which no other fault is at work */
  readonly calm?: number;
  /** A store in the memory of the worker is gone with it. */
  readonly forgets?: boolean;
  /** ms: shortest and longest */
  readonly duration: readonly [number, number];
  /** Strikes, and resolves when it is healed. */
  strike(scene: Scene, strike: Strike): Promise<void>;
}

export function fault(group: Group, name: string, duration: Fault['duration'], strike: Fault['strike']): Fault {
  return { group, name, duration, strike };
}

export const wide: typeof fault = (...args) => ({ ...fault(...args), isWide: true });

/** The stage of a fault that only one kind of store has. */
export function stageOf<S extends Stage>(kind: new (...args: never[]) => S, { stage }: Scene): S {
  if (stage instanceof kind) return stage;
  throw new Error(`This fault needs a ${kind.name}`);
}
