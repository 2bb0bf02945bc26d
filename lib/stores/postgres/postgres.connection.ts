import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { StoreError } from '../../core/model/errors.js';
import { checkClient, loadClient } from '../../core/store/check-client.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { StoreWarnings } from '../../core/store/store-warnings.js';
import { connectTimeout, inTime, isSettledWithin, KEEP_ALIVE } from '../../core/util/clock.js';
import { detached } from '../../core/util/detached.js';
import { isConflict, late, sqlStateOf, unsent } from './postgres.errors.js';

export type Row = Readonly<Record<string, unknown>>;

/** Runs statements, each as a transaction of its own. */
export interface PostgresConnection {
  /** @throws the error of the server or the client; a {@link StoreError} that `isUnsent` if the statement was not sent. */
  ask(text: string, values: readonly unknown[]): Promise<readonly Row[]>;
  /** Exchanges that it can serve at a time: each may be several statements. `undefined`: it is not known, as the connections are those of the app. */
  readonly atOnce?: number | undefined;
  /** Makes a client beside it. Without it, none can. */
  clientBeside?(): Promise<PostgresClient>;
  readonly onWarning?: LockStore['onWarning'];
  close(): Promise<void>;
}

/** A `Client` of `pg`, as far as it is used. By its methods and not by its class: an app may have another copy of `pg`. */
export interface PostgresClient {
  connect(): Promise<unknown>;
  query(config: object): Promise<{ readonly rows: readonly Row[] }>;
  end(): Promise<unknown>;
  unref?(): void;
  readonly host?: string;
  readonly port?: number;
  readonly processID?: number;
  readonly secretKey?: number;
  readonly connection?: {
    readonly stream?: { destroy(): void };
    attachListeners?(stream: Socket): void;
    startup?: () => void;
    cancel?(processID?: number, secretKey?: number): void;
  };
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** A `Pool` of `pg`, as far as it is used. */
export interface PostgresPool {
  readonly options: object;
  Client?: Driver['Client'];
  readonly idleCount?: number;
  connect(): Promise<PostgresClient & { release(isBroken?: boolean): void }>;
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
}

/** The part of `pg` that is used. */
interface Driver {
  readonly Pool: new (options: object) => PostgresPool;
  readonly Client: (new (options: object) => PostgresClient) & { readonly prototype: PostgresClient };
}

/** Options of each connection. The binary format of `pg` loses digits of large numbers. */
export const OF_EACH = { keepAlive: true, keepAliveInitialDelayMillis: KEEP_ALIVE, binary: false };
/** Milliseconds from a cancelled statement to its answer. */
const GRACE = 100;
/** PgBouncer gives up after 10 seconds. */
const LONGEST_CANCEL = 15_000;
const CANCELLED = '57014';
const PREPARED_IS_MISSING = ['26000', '42P05'];

/** Loads `pg` when it is needed: an app that passes a `query` may not have it. @throws {LockConfigError} when it is missing or too old. */
export async function driver(): Promise<Driver> {
  const { default: pg } = await loadClient('postgresStore', 'pg', () => import('pg'));
  checkClient('postgresStore', 'pg', canUnref(pg.Client));
  return pg;
}

/** Whether an idle connection can be kept from keeping the process alive: since version 8.7. */
export function canUnref(Client: Driver['Client']): boolean {
  return typeof Client.prototype.unref === 'function';
}

/** Makes a client beside the pool. It is not connected yet. */
export async function clientTo(source: object, query_timeout: number, connectionTimeout?: number): Promise<PostgresClient> {
  const { Client = (await driver()).Client } = source as Partial<Driver>;
  const connectionTimeoutMillis = connectionTimeout ?? connectTimeout(query_timeout);
  return new (careful(Client))({ ...source, ...OF_EACH, connectionTimeoutMillis, query_timeout });
}

/** `pg` throws in a listener when it cannot read what arrives, which would end the process. Here it ends the connection. */
function careful(Client: Driver['Client']): Driver['Client'] {
  return class extends Client {
    constructor(options: object) {
      super(options);
      const { connection } = this;
      if (!connection?.attachListeners) return;
      const attach = connection.attachListeners.bind(connection);
      connection.attachListeners = (stream) => {
        attach(stream);
        const [read] = stream.listeners('data') as ((bytes: Buffer) => void)[];
        if (!read) return;
        stream.off('data', read).on('data', (bytes: Buffer) => {
          try {
            read(bytes);
          } catch (error) {
            stream.destroy(error as Error);
          }
        });
      };
    }
  };
}

/** The options that make another pool like this one. A pool hides its password where its options are listed. */
export function optionsOf({ options, Client }: PostgresPool): object {
  return { ...options, password: (options as { password?: unknown }).password, Client };
}

export interface PoolOptions {
  /** Milliseconds for the connection, and for each statement. */
  readonly requestTimeout: number;
  /** Connections of the pool. */
  readonly max: number;
  /** Whether statements are prepared by name. */
  readonly prepare: boolean;
}

/** Statements over a pool. A connection that fails or does not answer in time is not used again. */
export class PoolConnection implements PostgresConnection {
  private pool: Promise<PostgresPool> | undefined;
  private isClosed = false;
  private isPrepared: boolean;
  /** Settles when the last connection is made, or late. */
  private making: Promise<unknown> = Promise.resolve();
  private readonly warnings = new StoreWarnings();
  readonly onWarning = this.warnings.on;

  /** @param makePool makes a pool that is used for nothing else. */
  constructor(
    private readonly options: PoolOptions,
    private readonly makePool: () => Promise<PostgresPool>,
  ) {
    this.isPrepared = options.prepare;
  }

  get atOnce(): number {
    return Math.max(2, Math.floor(this.options.max / 2));
  }

  ask(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    // A connection that is made during a call lives longer than that.
    return detached(() => this.request(text, values));
  }

  async clientBeside(connectionTimeout?: number): Promise<PostgresClient> {
    return clientTo(optionsOf(await this.open()), this.options.requestTimeout, connectionTimeout);
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    if (this.pool) await isSettledWithin(this.options.requestTimeout, (async () => (await this.pool)?.end())());
  }

  private open(): Promise<PostgresPool> {
    this.pool ??= this.makePool().then((pool) => {
      // The pool replaces an idle connection that breaks.
      pool.on('error', ignore);
      if (pool.Client) pool.Client = careful(pool.Client);
      return pool;
    });
    return this.pool;
  }

  /**
   * | the statement | its connection |
   * |---|---|
   * | is answered in time, also with a conflict | goes back to the pool |
   * | fails in another way | is closed |
   * | is late, and the server confirms that it was cancelled | goes back to the pool, after that |
   * | is late, and answers or fails otherwise, or there is no answer | is closed, after the wait for it |
   * | finds that its prepared text is missing | is closed; the statement is sent once more, unprepared |
   */
  private async request(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const client = await this.connect();
    let isBroken = false;
    let cancelled: Promise<boolean> | undefined;
    const release = (isUsable: boolean): void => {
      client.off('error', ignore);
      client.release(!isUsable);
    };
    client.on('error', ignore);
    try {
      const { requestTimeout } = this.options;
      const asked = client.query({ name: this.isPrepared ? nameOf(text) : undefined, text, values });
      const tooLate = (): StoreError => {
        cancelled = this.cancel(client, asked);
        return late(requestTimeout);
      };
      return (await inTime(requestTimeout, asked, tooLate)).rows;
    } catch (error) {
      isBroken = !isConflict(error);
      if (!this.isPrepared || !PREPARED_IS_MISSING.includes(sqlStateOf(error) ?? '')) throw error;
      this.isPrepared = false;
      this.warnings.warn(
        'Postgres forgets prepared statements, as poolers do: set `prepare: false` in postgresStore. They are not used any more.',
        'NDL_PREPARED',
      );
    } finally {
      // A server that is short of processor time is spared a new connection.
      if (cancelled) cancelled.then(release, () => release(false));
      else release(!isBroken);
    }
    return this.request(text, values);
  }

  /**
   * A statement that waits at the server waits on, though nobody reads its answer. Until it is over, its connection is kept: so no more than `max` wait.
   *
   * @returns whether the server confirms that it was cancelled.
   */
  private async cancel({ processID, secretKey }: PostgresClient, asked: Promise<unknown>): Promise<boolean> {
    let isConfirmed = false;
    asked.catch((error: unknown) => (isConfirmed = sqlStateOf(error) === CANCELLED));
    const canceller = await this.clientBeside(LONGEST_CANCEL);
    const { connection } = canceller;
    if (!connection?.cancel) return false;
    canceller.on('error', ignore);
    canceller.unref?.();
    // Instead of the first message of a session. The other side ends the connection: PgBouncer 1.18 crashes if we do.
    connection.startup = () => connection.cancel!(processID, secretKey);
    await isSettledWithin(this.options.requestTimeout, canceller.connect());
    await isSettledWithin(GRACE, asked);
    return isConfirmed;
  }

  private async connect(): Promise<PostgresClient & { release(isBroken?: boolean): void }> {
    if (this.isClosed) throw new StoreError('The Postgres store is closed.', { transient: false, isUnsent: true });
    const { requestTimeout } = this.options;
    let isOver = false;
    const connecting = this.open().then((pool) => {
      if (pool.idleCount) return pool.connect();
      // One after the other: where a server is short of processor time, all at once would be late together, again and again.
      const made = this.making.then(() => {
        if (isOver) throw new StoreError('Postgres: its caller has given up.', { transient: true });
        return pool.connect();
      });
      this.making = isSettledWithin(requestTimeout, made);
      return made;
    });
    try {
      return await inTime(
        requestTimeout,
        connecting,
        () => new StoreError(`Postgres: the pool gave no connection within ${requestTimeout} ms.`, { transient: true }),
      );
    } catch (cause) {
      // It may come later.
      isOver = true;
      connecting.then((client) => client.release(), ignore);
      throw unsent(cause);
    }
  }
}

/** Names a statement by its text: a pooler may lend a connection on which another program has prepared something by a number. */
function nameOf(text: string): string {
  return `distributed_lock_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}

function ignore(): void {}
