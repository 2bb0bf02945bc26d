import type { TcpProxy } from '../../../support/tcp-proxy.js';
import type { Fault } from '../../faults/fault.js';
import type { Scene } from '../../run/scene.js';
import { leftoversIn, type StoredRecord } from '../records/leftovers.js';
import type { Leftover, Stage } from '../store.js';
import { databaseFaults } from './faults.js';

/** A private server of several processes, or of one. */
export interface DatabaseServer {
  readonly port: number | undefined;
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

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

export interface DatabaseStageParts {
  server: DatabaseServer;
  operator: Operator;
  proxies: TcpProxy[];
  /** where a worker finds it, by the port of its proxy */
  targetAt(port: number): unknown;
  change: Stage['change'];
}

/** A database server, and a proxy before it for each worker. */
export class DatabaseStage implements Stage {
  readonly isShared = true;
  readonly faults: readonly Fault[];
  readonly proxies: readonly TcpProxy[];
  readonly change: Stage['change'];

  constructor(private readonly parts: DatabaseStageParts) {
    this.faults = databaseFaults(parts.operator);
    this.proxies = parts.proxies;
    this.change = parts.change;
  }

  get server(): DatabaseServer {
    return this.parts.server;
  }

  get operator(): Operator {
    return this.parts.operator;
  }

  target(slot: number): unknown {
    return this.parts.targetAt(this.proxies[slot]!.port);
  }

  async heal(): Promise<void> {
    this.server.resume();
    await Promise.all(this.proxies.map((proxy) => proxy.heal()));
  }

  async leftovers(pidsOfKilled: ReadonlySet<number>): Promise<Leftover[]> {
    const { records, time } = await this.lasting();
    return leftoversIn(records, time, pidsOfKilled);
  }

  lasting(): Promise<{ records: StoredRecord[]; time: number }> {
    return this.operator.lasting();
  }

  async stop(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
    await this.server.stop();
  }
}

/** The stage of a fault that only databases have. */
export function databaseOf({ stage }: Scene): DatabaseStage {
  if (stage instanceof DatabaseStage) return stage;
  throw new Error('This fault needs a database');
}
