import type { LockStore } from '../../../lib/core.js';
import type { RecordTable } from '../../../lib/stores/records/record.table.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import type { Fault } from '../faults/fault.js';
import type { Random } from '../random.js';
import type { StoredRecord } from './records/leftovers.js';

export interface OpenedStore {
  readonly store: LockStore;
  /** what was chosen at random, for who reads the history */
  readonly detail?: string;
  /** what a lent client has more of than before: event names with numbers */
  listeners?(): string[];
  /** closes what the worker itself has opened */
  closeLent?(): Promise<void>;
}

/** What a worker chooses for a store that it opens. */
export interface Opening {
  requestTimeout: number;
  random: Random;
  /** given to a store of records only: makes its table a broken one */
  breakTable?: (table: RecordTable) => RecordTable;
}

export interface WorkerModule {
  /** @param target what its stage has said */
  open(target: unknown, opening: Opening): OpenedStore;
}

export interface StageOptions {
  /** names of fault groups, for what the servers must be able to do */
  groups: readonly string[];
  /** of workers at a time */
  slots: number;
  random: Random;
}

/** A key that is left and must not be. */
export interface Leftover {
  key: string;
  what: string;
  /** of a queue: the owners that stand in it though their processes have closed their locks */
  owners?: string[];
}

/** The servers of one run, and the ways to them. */
export interface Stage {
  /** only one worker has it */
  readonly isPrivate?: boolean;
  /** what can happen to its servers */
  readonly faults: readonly Fault[];
  /** where the worker of this slot finds the store; JSON */
  target(slot: number): unknown;
  /** one for each slot, where the store is asked by TCP */
  readonly proxies?: readonly TcpProxy[];
  /** what a request contains that changes something, or may do so */
  readonly change?: string | ((request: Buffer) => boolean);
  /** whether the store sees that a process is dead, and takes its keys from it */
  readonly knowsDeaths?: boolean;
  /** says by how many ms the clocks of servers are wrong, where they can be */
  setClock?(ms: number): void;
  /** ends all faults of its servers */
  heal?(): Promise<void>;
  leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]>;
  /** The rows that still last, and the clock by which they end, where the store keeps records with a clock. */
  lasting?(): Promise<{ records: StoredRecord[]; time: number }>;
  stop(): Promise<void>;
}

export interface StageModule {
  startStage(options: StageOptions): Promise<Stage>;
}
