import type { LockStore } from '../../lib/core.js';
import type { TcpProxy } from '../../test/support/tcp-proxy.js';
import type { Random } from '../random.js';

export interface OpenedStore {
  readonly store: LockStore;
  /** what a lent client has more of than before: event names with numbers */
  listeners(): string[];
  /** closes what the worker itself has opened */
  closeLent(): Promise<void>;
}

export interface WorkerModule {
  open(place: unknown, random: Random): OpenedStore;
}

export interface StageOptions {
  /** names of fault groups, for what the servers must be able to do */
  groups: readonly string[];
  /** of workers at a time */
  slots: number;
  random: Random;
}

/** The servers of one run, and the ways to them. */
export interface Stage {
  /** where the worker of this slot finds the store; JSON */
  place(slot: number): unknown;
  /** one for each slot, where the store is asked by TCP */
  readonly proxies: readonly TcpProxy[];
  /** ends all faults */
  heal(): Promise<void>;
  /** what is left in the store and must not be: a line for each */
  leftovers(pidsOfKilled: ReadonlySet<number>): Promise<string[]>;
  stop(): Promise<void>;
}

export interface StageModule {
  startStage(options: StageOptions): Promise<Stage>;
  /** the fault groups that this store can be put through */
  readonly groups: readonly string[];
}
