import { type Checks, checkOneOf, checkOptions, defined, integerFrom, ofType, oneOf, urlWith } from '../../core/model/check-options.js';
import { configError } from '../../core/model/errors.js';
import { checkClient } from '../../core/store/check-client.js';
import { connectTimeout } from '../../core/util/clock.js';
import {
  canUnref,
  clientTo,
  driver,
  OF_EACH,
  optionsOf,
  PoolConnection,
  type PostgresConnection,
  type PostgresPool,
} from './postgres.connection.js';
import { type OpenSource, overClient, type PostgresListen } from './postgres.listener.js';
import { type PostgresQuery, QueryConnection } from './postgres.query.js';
import { PostgresStatements } from './postgres.statements.js';
import { PostgresTable } from './postgres.table.js';

/** Where the server is; exactly one of these. */
export type PostgresConnectionOptions =
  | {
      /** `postgres://` or `postgresql://`. */
      url: string;
    }
  | {
      /** A `Pool` of `pg` of your own, whose options are used for connections of ours. It is not used itself. */
      pool: PostgresPool;
    }
  | {
      /**
       * Raw SQL of an ORM, over the connections of the app: prefer `url`. It is called outside of every transaction of the caller. Without `listen`,
       * waiters poll.
       */
      query: PostgresQuery;
    };

/** Options of {@link postgresStore}. */
export type PostgresStoreOptions = PostgresConnectionOptions & {
  /** The table, also as `schema.table`. Default `distributed_lock`. */
  table?: string;
  /**
   * Where to listen for wake-ups: a direct way to the server, past a pooler, or a function that listens, such as `sql.listen` of postgres.js. `false`:
   * nowhere, and waiters poll. Default: where `url` or `pool` lead to.
   */
  listen?: { connectionString: string } | PostgresListen | false;
  /** `'check'` (default): a missing table is an error that says what to run. `'create'`: it is created. */
  schema?: 'check' | 'create';
  /** Whether statements are prepared by name; only with `url`. Default true. Poolers that mix up sessions (pgbouncer before 1.21) need false. */
  prepare?: boolean;
  /** Most connections of our own pool; only with `url`. Default 4. One more listens. */
  max?: number;
  /** Milliseconds that a single statement may take, and that a connection may take. Default 1000. */
  requestTimeout?: number;
};

export const TABLE = 'distributed_lock';
const MAX = 4;
/** Idle connections end, and keep no process alive; we end late statements. No settings of the session: poolers refuse them. */
const LIMITS = { ...OF_EACH, min: 0, query_timeout: 0, idleTimeoutMillis: 20_000, allowExitOnIdle: true };
/** Options of `pg`, which people write beside ours. */
const OF_CLIENT = ['host', 'port', 'user', 'password', 'database', 'ssl', 'connectionString'];
const SERVER = urlWith(
  /^postgres(ql)?:\/\//i,
  'postgres://localhost:5432/shop',
  /[?&]ssl(mode|cert|key|rootcert)?=/,
  'sslmode=verify-full',
);
/** It may have no host, where that is a socket, and a bare %. */
const url = (value: unknown) =>
  SERVER(typeof value === 'string' ? value.replace('@/', '@localhost/').replace(/%(?![\da-f]{2})/gi, '%25') : value);
const CHECKS: Checks = {
  url,
  pool: (value) => {
    const { connect, options } = Object(value) as Partial<PostgresPool>;
    return typeof connect === 'function' && typeof options === 'object' ? undefined : 'a Pool of pg';
  },
  query: ofType('function'),
  table: ofType('string'),
  listen: (value) =>
    value === false || typeof value === 'function' || !url((Object(value) as { connectionString?: unknown }).connectionString)
      ? undefined
      : 'an object { connectionString }, which is a URL, a function, or false',
  schema: oneOf('check', 'create'),
  prepare: oneOf(true, false),
  max: integerFrom(1, 1000),
  // Node fires a longer timer at once.
  requestTimeout: integerFrom(1, 2 ** 31 - 1),
};

/** @throws {LockConfigError} when an option is wrong. */
export function openTable(given: PostgresStoreOptions): PostgresTable {
  const options = checked(given);
  const { table = TABLE, schema = 'check', requestTimeout = 1000 } = options;
  const connection = connectionOf(options, requestTimeout);
  const listening = sourceOf(options.listen, connection, requestTimeout);
  // Where Prisma has its tables. pg does not know the parameter, and looks into `public`.
  const source: unknown = 'url' in options ? options.url : 'pool' in options && Reflect.get(optionsOf(options.pool), 'connectionString');
  const [, schemaName = 'public'] = /[?&]schema=([^&]+)/.exec(String(source)) ?? [];
  const name = schemaName === 'public' || table.includes('.') ? table : `${schemaName}.${table}`;
  return new PostgresTable(connection, listening, new PostgresStatements(name), requestTimeout, schema === 'create');
}

/** Returns the options that are not `undefined`. */
function checked(given: PostgresStoreOptions): PostgresStoreOptions {
  const fail = (problem: string): never => {
    throw configError('OPTION', `postgresStore: ${problem}.`);
  };
  if ('connect' in Object(given)) fail('a pool is passed as postgresStore({ pool })');
  const ofClient = OF_CLIENT.find((name) => name in Object(given));
  if (ofClient) fail(`"${ofClient}" is an option of pg: write postgresStore({ pool: new Pool({ ${ofClient} }) })`);
  checkOptions(given ?? null, 'postgresStore', CHECKS);
  const options = defined(given);
  checkOneOf(given, 'postgresStore', ['url', 'pool', 'query']);
  if ('pool' in options && options.pool.Client) checkClient('postgresStore', 'pg', canUnref(options.pool.Client));
  for (const name of ['prepare', 'max'] as const) {
    if (name in options && !('url' in options)) fail(`"${name}" is only for "url"`);
  }
  return options;
}

/** Makes connections of our own, with the options of a pool of the app: its connections may be busy, or have a transaction open. */
function connectionOf(options: PostgresStoreOptions, requestTimeout: number): PostgresConnection {
  if ('query' in options) return new QueryConnection(options.query, requestTimeout);
  const source: { readonly max?: number } = 'pool' in options ? optionsOf(options.pool) : { connectionString: options.url };
  const { prepare = 'url' in options, max = Math.min(MAX, source.max ?? MAX) } = options as { prepare?: boolean; max?: number };
  const limits = { ...LIMITS, max, connectionTimeoutMillis: connectTimeout(requestTimeout) };
  const makePool = async () => {
    const pool = new (await driver()).Pool({ ...source, ...limits });
    // Read for each connection: an app may renew it, as it must a token.
    if ('pool' in options)
      Object.defineProperty(pool.options, 'password', { get: () => Reflect.get(options.pool.options, 'password') as unknown });
    return pool;
  };
  return new PoolConnection({ requestTimeout, max, prepare }, makePool);
}

function sourceOf(listen: PostgresStoreOptions['listen'], beside: PostgresConnection, requestTimeout: number): OpenSource | undefined {
  if (typeof listen === 'function') return () => Promise.resolve({ listen });
  if (listen) return overClient(() => clientTo(listen, requestTimeout));
  return listen === false || !beside.clientBeside ? undefined : overClient(() => beside.clientBeside!());
}
