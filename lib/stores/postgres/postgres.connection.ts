import { createHash } from 'node:crypto';
import { StoreError } from '../../core/model/errors.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { StoreWarnings } from '../../core/store/store-warnings.js';
import { inTime, isSettledWithin } from '../../core/util/clock.js';
import { detached } from '../../core/util/detached.js';
import { closed, isConflict, late, sqlStateOf, unsent } from './postgres.errors.js';

export type Row = Readonly<Record<string, unknown>>;

/** What answers statements, each as a transaction of its own. */
export interface PostgresConnection {
  /** @throws what the server or the client says; a {@link StoreError} that `isUnsent` if the statement did not leave. */
  ask(text: string, values: readonly unknown[]): Promise<readonly Row[]>;
  /** Exchanges that it can serve at a time: each may be several statements. `undefined`: it is not known, as the connections are those of the app. */
  readonly atOnce?: number;
  /** A new connection that may listen. Without it, nothing can. */
  readonly listener?: () => Promise<PostgresClient>;
  readonly onWarning?: LockStore['onWarning'];
  close(): Promise<void>;
}

/** What is used of a `Client` of `pg`. By its methods and not by its class: an app may have another copy of `pg`. */
export interface PostgresClient {
  connect(): Promise<unknown>;
  query(config: object): Promise<{ readonly rows: readonly Row[] }>;
  end(): Promise<unknown>;
  unref?(): void;
  readonly processID?: number;
  readonly secretKey?: number;
  readonly connection?: {
    readonly stream?: { destroy(): void };
    startup?: () => void;
    cancel?(processID?: number, secretKey?: number): void;
  };
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** What is used of a `Pool` of `pg`. */
export interface PostgresPool {
  readonly options: object;
  readonly Client?: new (options: object) => PostgresClient;
  connect(): Promise<PostgresClient & { release(isBroken?: boolean): void }>;
  end(): Promise<void>;
  on(event: 'error', listener: () => void): unknown;
}

/** The part of `pg` that is used. */
interface Driver {
  readonly Pool: new (options: object) => PostgresPool;
  readonly Client: new (options: object) => PostgresClient;
}

/** Milliseconds from a cancelled statement to its answer. */
const GRACE = 100;
/** PgBouncer gives up after 10 seconds. */
const LONGEST_CANCEL = 15_000;
const PREPARED_IS_MISSING = ['26000', '42P05'];

/** Loaded when it is needed: who passes a `query` can do without. */
export async function driver(): Promise<Driver> {
  const { default: pg } = await import('pg');
  return pg;
}

export interface PoolOptions {
  /** Milliseconds for the connection, and for each statement. */
  readonly requestTimeout: number;
  /** Connections of the pool. */
  readonly max: number;
  /** Whether statements are prepared by name. */
  readonly prepare: boolean;
  /** `undefined`: where the pool leads to. */
  readonly listenAt: string | undefined;
}

/** Statements over a pool. A connection that fails or does not answer in time is not used again. */
export class PoolConnection implements PostgresConnection {
  private pool: PostgresPool | undefined;
  private isClosed = false;
  private isPrepared: boolean;
  private readonly warnings = new StoreWarnings();
  readonly onWarning = this.warnings.on;
  private readonly names = new Map<string, string>();

  /** @param makePool makes one that is used for nothing else. */
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

  readonly listener = (): Promise<PostgresClient> => this.client(this.options.listenAt);

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    if (this.pool) await isSettledWithin(this.options.requestTimeout, this.pool.end());
  }

  /** Beside the pool. It is not connected yet. @param url where to; default: where the pool leads. */
  private async client(url?: string, connectionTimeoutMillis = this.options.requestTimeout): Promise<PostgresClient> {
    const pool = this.pool ?? (await this.open());
    const Client = pool.Client ?? (await driver()).Client;
    const source = url === undefined ? optionsOf(pool) : { connectionString: url };
    return new Client({ ...source, keepAlive: true, connectionTimeoutMillis, query_timeout: this.options.requestTimeout });
  }

  private async open(): Promise<PostgresPool> {
    const pool = await this.makePool();
    // Others may have opened one meanwhile.
    if (this.pool) return this.pool;
    // The pool makes another connection in place of an idle one that breaks.
    pool.on('error', () => undefined);
    return (this.pool = pool);
  }

  private async request(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const client = await this.connect();
    let isBroken = false;
    let ending: Promise<unknown> | undefined;
    const release = (): void => {
      client.off('error', ignore);
      client.release(isBroken);
    };
    client.on('error', ignore);
    try {
      const name = this.isPrepared ? this.nameOf(text) : undefined;
      const { requestTimeout } = this.options;
      const asked = client.query({ name, text, values });
      return (
        await inTime(requestTimeout, asked, () => {
          ending = this.cancel(client, asked);
          return late(requestTimeout);
        })
      ).rows;
    } catch (error) {
      isBroken = !isConflict(error);
      if (!this.isPrepared || !PREPARED_IS_MISSING.includes(sqlStateOf(error) ?? '')) throw error;
      this.isPrepared = false;
      this.warnings.warn(
        'Postgres forgets prepared statements, as poolers do: set `prepare: false` in postgresStore. They are not used any more.',
      );
    } finally {
      if (ending) void ending.then(release, release);
      else release();
    }
    return this.request(text, values);
  }

  /** A statement that waits at the server waits on, though nobody reads its answer. Until it is over, its connection is kept: so no more than `max` wait. */
  private async cancel({ processID, secretKey }: PostgresClient, asked: Promise<unknown>): Promise<void> {
    const { requestTimeout } = this.options;
    const canceller = await this.client(undefined, LONGEST_CANCEL);
    const { connection } = canceller;
    if (!connection?.cancel) return;
    canceller.on('error', ignore);
    canceller.unref?.();
    // In place of the first message of a session. The other side ends the connection: PgBouncer 1.18 crashes if we do.
    connection.startup = () => connection.cancel!(processID, secretKey);
    await isSettledWithin(requestTimeout, canceller.connect());
    await isSettledWithin(GRACE, asked);
  }

  private async connect(): Promise<PostgresClient & { release(isBroken?: boolean): void }> {
    if (this.isClosed) throw closed();
    const { requestTimeout } = this.options;
    const noConnection = (): StoreError =>
      new StoreError(`Postgres: the pool has no connection for us within ${requestTimeout} ms.`, { transient: true });
    let connecting: ReturnType<PostgresPool['connect']> | undefined;
    try {
      const pool = this.pool ?? (await this.open());
      connecting = pool.connect();
      return await inTime(requestTimeout, connecting, noConnection);
    } catch (cause) {
      // It may come later.
      connecting?.then(
        (client) => client.release(),
        () => undefined,
      );
      throw unsent(cause);
    }
  }

  /** By its text: a pooler may lend a connection on which another program has prepared something by a number. */
  private nameOf(text: string): string {
    let name = this.names.get(text);
    if (name === undefined) {
      name = `distributed_lock_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
      this.names.set(text, name);
    }
    return name;
  }
}

/** What makes another one like it. A pool hides the password from those who list its options. */
export function optionsOf({ options, Client }: PostgresPool): object {
  return { ...options, password: (options as { password?: unknown }).password, Client };
}

function ignore(): void {}
