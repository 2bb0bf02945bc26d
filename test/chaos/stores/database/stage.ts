import type { DatabaseServer } from '../../../support/database-process.js';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import type { Fault } from '../../faults/fault.js';
import { leftoversIn, type StoredRecord } from '../records/leftovers.js';
import type { Leftover, Stage } from '../store.js';
import { databaseFaults } from './faults.js';

/** Actions of an operator at one kind of database. */
export interface Operator {
  /** Cuts the connections of all workers. */
  killClients(): Promise<void>;
  /** Cuts those that listen, where some do. */
  killListeners?(): Promise<void>;
  /** Holds what has been written, or all of the table, in a transaction of its own for a while. */
  holdRows(pause: () => Promise<void>): Promise<void>;
  holdTable(pause: () => Promise<void>): Promise<void>;
  /** Takes these rights from the workers. */
  forbid(rights: string): Promise<void>;
  allow(rights: string): Promise<void>;
  /** Deletes the rows that ended so many ms ago; 0: all rows. */
  sweep(endedFor: number): Promise<void>;
  deleteRow(key: string): Promise<void>;
  /** Writes all rows again. */
  rewrite(): Promise<void>;
  /** The rows that still last, and the server's clock. */
  lasting(): Promise<{ records: StoredRecord[]; time: number }>;
}

/** Where a worker finds it. */
export interface DatabaseTarget {
  url: string;
}

/** A database server, and a proxy before it for each worker. */
export class DatabaseStage implements Stage {
  readonly faults: readonly Fault[];

  constructor(
    readonly server: DatabaseServer,
    readonly operator: Operator,
    readonly proxies: readonly TcpProxy[],
    readonly change: Stage['change'],
    private readonly urlAt: (port: number) => string,
  ) {
    this.faults = databaseFaults(operator);
  }

  target(slot: number): DatabaseTarget {
    return { url: this.urlAt(this.proxies[slot]!.port) };
  }

  async heal(): Promise<void> {
    this.server.resume();
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    const { records, time } = await this.lasting();
    return leftoversIn(records, time, pidsOfKilled);
  }

  lasting(): Promise<{ records: StoredRecord[]; time: number }> {
    return this.operator.lasting();
  }

  async stop(): Promise<void> {
    await this.server.stop();
  }
}
