import type { Message, RecordTable } from '../record.table.js';

/** One atomic step on one row: a compare-and-set, or a read. */
export interface CasChange {
  readonly key: string;
  /**
   * The row is written if it still has this version; `undefined`: if there is none. `'touch'`: only its version is changed, if there is a row.
   * `'look'`: nothing is changed.
   */
  readonly expected: { readonly version: string | undefined } | 'touch' | 'look';
  readonly text: string;
  /** Sent if and only if the row is written. */
  readonly messages: readonly Message[];
}

/** A row of a {@link CasTable}. */
export interface CasRow {
  /** No row of this key ever has the same version again, also not after it was deleted. */
  readonly version: string;
  readonly text: string;
  /** The store's count of writes when the row was written, or later. */
  readonly revision?: number;
}

/** The answer to a {@link CasChange}: the new version, or what is there instead. */
export type CasFound = (
  { readonly written: true; readonly version: string } | { readonly written: false; readonly row: CasRow | undefined }
) & {
  /** The store's count of writes, at a time between the request and the reply. A read that may be stale must not tell it. */
  readonly revision?: number;
};

/** A store that compares and sets, and has no clock: what {@link observedTable} needs. */
export interface CasTable extends Omit<RecordTable, 'exchange' | 'observedTime'> {
  /** Names the store, and where in it the rows are: what one table of this process has seen there, the others have seen, too. Default: no others. */
  readonly storeId?: string;
  /**
   * Calls back when another store may answer from now on, because a connection broke; or with the name of the store that has answered, before each answer
   * is given.
   */
  onReplaced?(listener: (store?: string) => void): void;
  /** Makes each change that is still possible, as {@link RecordTable.exchange} does. */
  exchange(changes: readonly CasChange[]): readonly Promise<CasFound>[];
  /** Asks for the store's count of writes, if it has one, in a way that is never stale. It rejects if the store may have been away: it may be another one. */
  count?(): Promise<number>;
  /** Deletes, by their version, the rows that were written when the count was no larger than this, if they are over. And messages that are as old. */
  sweep?(count: number, isOver: (row: CasRow) => boolean): Promise<void>;
}
