import type { Socket } from 'node:net';
import type { Pool, PoolConnection } from 'mysql2/promise';
import { StoreError } from '../../core/model/errors.js';
import { inTime, isSettledWithin } from '../../core/util/clock.js';
import { isConflict, storeErrorOf } from './mysql.errors.js';

/** What a statement that changes something answers. */
export interface Changed {
  readonly affectedRows: number;
  readonly insertId: number | string;
}

export type Row = readonly unknown[];

/** Sends statements over a pool, each with an end. A connection that has not answered in time is closed: nobody knows what it would answer next. */
export class MysqlClient {
  private isClosed = false;
  private created: Promise<unknown> | undefined;

  /**
   * @param isOwned whether the pool is ours to close.
   * @param schema what to run before the first statement, or for an error that says that the table is missing.
   */
  constructor(
    private readonly pool: Pool,
    readonly requestTimeout: number,
    private readonly isOwned: boolean,
    private readonly schema: string,
    private readonly creates: boolean,
  ) {}

  /** Runs one statement. Values are numbers and buffers, whose text does not depend on the session. @throws {StoreError} */
  async run<Result extends Changed | Row[]>(sql: string, values: readonly unknown[] = []): Promise<Result> {
    if (this.creates) await (this.created ??= this.send(this.schema, []).catch((error: unknown) => this.notCreated(error)));
    return this.send<Result>(sql, values);
  }

  async close(): Promise<void> {
    if (!this.isOwned || this.isClosed) return;
    this.isClosed = true;
    await isSettledWithin(this.requestTimeout, this.pool.end());
  }

  private notCreated(error: unknown): never {
    this.created = undefined;
    throw error;
  }

  private async send<Result extends Changed | Row[]>(sql: string, values: readonly unknown[]): Promise<Result> {
    const connection = await this.connect();
    const socket = this.socketOf(connection);
    socket?.ref();
    try {
      // Whatever the user's pool is set to.
      const statement = { sql, values: [...values], rowsAsArray: true, typeCast: true, nestTables: false as const };
      const [result] = await this.inTime(connection.query(statement), 'did not answer');
      socket?.unref();
      connection.release();
      return result as unknown as Result;
    } catch (cause) {
      const error = storeErrorOf(cause, { schema: this.schema });
      socket?.unref();
      if (error.transient && !isConflict(error)) {
        connection.destroy();
        socket?.destroy();
      } else connection.release();
      throw error;
    }
  }

  private async connect(): Promise<PoolConnection> {
    if (this.isClosed) throw new StoreError('The MySQL store is closed.', { transient: false, isUnsent: true });
    const connecting = this.pool.getConnection();
    try {
      return await this.inTime(connecting, 'gave no connection');
    } catch (cause) {
      // It may come later.
      connecting.then(
        (connection) => connection.release(),
        () => undefined,
      );
      if (cause instanceof StoreError) throw new StoreError(cause.message, { transient: true, isUnsent: true });
      throw storeErrorOf(cause, { isUnsent: true });
    }
  }

  /** An idle connection of ours does not keep the process alive. */
  private socketOf(connection: PoolConnection): Socket | undefined {
    return this.isOwned ? (connection.connection as unknown as { stream?: Socket }).stream : undefined;
  }

  private inTime<T>(work: Promise<T>, problem: string): Promise<T> {
    const { requestTimeout } = this;
    return inTime(requestTimeout, work, () => new StoreError(`MySQL ${problem} within ${requestTimeout} ms.`, { transient: true }));
  }
}
