import type { Socket } from 'node:net';
import type { Pool, PoolConnection } from 'mysql2/promise';
import { StoreError } from '../../core/model/errors.js';
import { inTime, isSettledWithin, KEEP_ALIVE } from '../../core/util/clock.js';
import { errnoOf, isConflict, NO_TABLE, storeErrorOf } from './mysql.errors.js';

/** The answer to a statement that changes something. */
export interface Changed {
  readonly affectedRows: number;
  readonly insertId: number | string;
}

export type Row = readonly unknown[];

/** Two flags of a session, which come with each change: in a transaction, and autocommit. */
const STATUS = 3;
/** Autocommit alone. */
const COMMITTED = 2;

/** The server, or its init_connect, may have others, with which nobody sees a change, a change of several rows is refused, or rows are left out. */
const SESSION = ['autocommit = 1', 'sql_safe_updates = 0', `sql_select_limit = ${2n ** 64n - 1n}`];

/** Characters of a statement in the list of processes. */
const SHOWN = 100;

/** Sends statements over a pool of its own, each with a time limit. A connection that has not answered in time is closed: nobody knows what it would answer next. */
export class MysqlClient {
  private readonly pool: Pool;
  private isClosed = false;
  private created: Promise<unknown> | undefined;

  /**
   * @param makePool makes one that is used for nothing else, and does not connect yet. Its default number of connections is up to the caller.
   * @param schema what to run if the table is missing, or else what the error says to run.
   */
  constructor(
    private readonly makePool: (max?: number) => Pool,
    readonly requestTimeout: number,
    private readonly schema: string,
    private readonly creates: boolean,
  ) {
    this.pool = makePool();
    connected(this.pool, (connection) => {
      connection.stream.setKeepAlive(true, KEEP_ALIVE);
      for (const setting of SESSION) connection.query(`SET ${setting}`, ignore);
    });
  }

  /** Where its connections lead to. */
  get address(): { readonly host?: string; readonly port?: number; readonly socketPath?: string } {
    return configOf(this.pool)?.connectionConfig ?? {};
  }

  /** Runs one statement. Values are numbers and buffers, whose text does not depend on the session. @throws {StoreError} */
  async run<Result extends Changed | Row[]>(sql: string, values: readonly unknown[] = []): Promise<Result> {
    try {
      return await this.send<Result>(sql, values);
    } catch (error) {
      if (!this.creates || errnoOf(error) !== NO_TABLE) throw error;
      await (this.created ??= this.send(this.schema, []).finally(() => (this.created = undefined)));
      return this.send<Result>(sql, values);
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    await isSettledWithin(this.requestTimeout, this.pool.end());
  }

  private async send<Result extends Changed | Row[]>(sql: string, values: readonly unknown[]): Promise<Result> {
    const connection = await this.connect();
    const { stream } = rawOf(connection);
    let isWaiting = false;
    let isBroken = false;
    stream.ref();
    try {
      // Whatever the options of the user's pool are.
      const asked = connection.query({ sql, values: [...values], rowsAsArray: true, typeCast: true, nestTables: false });
      const [result]: readonly unknown[] = await inTime(this.requestTimeout, asked, () => {
        isWaiting = true;
        void this.cancel(connection, sql, asked);
        return this.late('did not answer');
      });
      const { serverStatus } = result as { serverStatus?: number };
      if (serverStatus !== undefined && (serverStatus & STATUS) !== COMMITTED) {
        isBroken = true;
        throw new StoreError('MySQL: the connection has a transaction that is open, where nobody sees a lock. It is closed.', {
          transient: true,
        });
      }
      return result as Result;
    } catch (cause) {
      const error = storeErrorOf(cause, { schema: this.schema });
      isBroken ||= error.transient && !isConflict(error);
      throw error;
    } finally {
      // An idle connection does not keep the process alive.
      stream.unref();
      if (isBroken && !isWaiting) destroy(connection);
      else if (!isWaiting) connection.release();
    }
  }

  /** A statement that waits at the server waits on, though nobody reads its answer. Until it is over, its connection is kept: so no more than `max` wait. */
  private async cancel(connection: PoolConnection, sql: string, asked: Promise<unknown>): Promise<void> {
    const killer = this.makePool(1);
    const ask = (text: string, values: unknown[] = []) =>
      inTime(this.requestTimeout, killer.query({ sql: text, values, rowsAsArray: true }), () => this.late('did not answer'));
    const start = sql.split('?', 1)[0]!.slice(0, SHOWN);
    const id = connection.threadId;
    connected(killer, ({ stream }) => stream.unref());
    for (let isOver = false; !isOver; isOver ||= await isSettledWithin(this.requestTimeout, asked)) {
      try {
        // By its text, too: another server may have another statement of this number.
        const [rows] = await ask('SHOW PROCESSLIST');
        isOver = !(rows as Row[]).some((row) => Number(row[0]) === id && String(row[7]).startsWith(start));
        if (!isOver) await ask('KILL QUERY ?', [id]);
      } catch (error) {
        isOver = !storeErrorOf(error).isRefusal;
      }
    }
    destroy(connection);
    await isSettledWithin(this.requestTimeout, killer.end());
  }

  private async connect(): Promise<PoolConnection> {
    if (this.isClosed) throw new StoreError('The MySQL store is closed.', { transient: false, isUnsent: true });
    const connecting = this.pool.getConnection();
    try {
      return await inTime(this.requestTimeout, connecting, () => this.late('gave no connection', true));
    } catch (cause) {
      // It may come later.
      connecting.then((connection) => connection.release(), ignore);
      throw storeErrorOf(cause, { isUnsent: true });
    }
  }

  private late(problem: string, isUnsent = false): StoreError {
    return new StoreError(`MySQL ${problem} within ${this.requestTimeout} ms.`, { transient: true, isUnsent });
  }
}

/** The part of a pool's configuration that is used. */
interface Config {
  readonly connectionLimit: number;
  readonly connectionConfig: { readonly database?: string; readonly host?: string; readonly port?: number; readonly socketPath?: string };
}

export function configOf(pool: object): Config | undefined {
  return (innerPoolOf(pool) as { readonly config?: Config }).config;
}

/** A pool of `mysql2/promise` has another one inside. */
export function innerPoolOf(pool: object): object {
  return (pool as { readonly pool?: object }).pool ?? pool;
}

interface RawConnection {
  readonly stream: Socket;
  query(sql: string, done: () => void): unknown;
  on(event: 'error', listener: () => void): unknown;
}

/** Calls back with each connection of the pool: a raw one, though it has the type of `mysql2/promise`. */
function connected(pool: Pool, listener: (connection: RawConnection) => void): void {
  const made = (connection: RawConnection): void => {
    // The pool listens to one error only. A connection may have two, as one that ends while something is written to it.
    connection.on('error', ignore);
    listener(connection);
  };
  pool.on('connection', made as never);
}

function rawOf({ connection }: { readonly connection: unknown }): RawConnection {
  return connection as RawConnection;
}

/** Closes a connection. The pool replaces it. */
function destroy(connection: PoolConnection): void {
  connection.destroy();
  rawOf(connection).stream.destroy();
}

function ignore(): void {}
