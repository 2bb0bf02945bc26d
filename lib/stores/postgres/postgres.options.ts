import { inspect } from 'node:util';
import { type Checks, checkOptions, defined, integerFrom, oneOf, unknownOption } from '../../core/model/check-options.js';
import { LockConfigError } from '../../core/model/errors.js';
import type { PostgresPool } from './postgres.connection.js';
import type { PostgresQuery } from './postgres.query.js';

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
  /** Where to listen for wake-ups: a direct way to the server, past a pooler. Default: where `url` or `pool` lead to. */
  listen?: { connectionString: string };
  /** `'check'` (default): a missing table is an error that says what to run. `'create'`: it is created. */
  schema?: 'check' | 'create';
  /** Whether statements are prepared by name; only with `url`. Default true. Poolers that mix up sessions (pgbouncer before 1.21) need false. */
  prepare?: boolean;
  /** Most connections of our own pool; only with `url`. Default 4. One more listens. */
  max?: number;
  /** Milliseconds that a single statement may take, and that a connection may take. Default 1000. */
  requestTimeout?: number;
};

const SOURCES = ['url', 'pool', 'query'] as const;
/** Node fires a longer timer at once. */
const LONGEST = 2 ** 31 - 1;
const CHECKS: Checks = {
  url: (value) => (typeof value === 'string' && value.trim() !== '' ? undefined : 'a URL such as postgres://localhost:5432/shop'),
  pool: (value) => (isPool(value) ? undefined : 'a Pool of pg'),
  query: (value) => (typeof value === 'function' ? undefined : 'a function (text, values) => rows'),
  table: () => undefined,
  listen: (value) =>
    typeof (Object(value) as { connectionString?: unknown }).connectionString === 'string' ? undefined : 'an object { connectionString }',
  schema: oneOf('check', 'create'),
  prepare: oneOf(true, false),
  max: integerFrom(1, 1000),
  requestTimeout: integerFrom(1, LONGEST),
};
/** Options of `pg`, which people write beside ours. */
const OF_CLIENT = ['host', 'port', 'user', 'password', 'database', 'ssl', 'connectionString'];

/**
 * Returns what is given: an option that is `undefined` is not.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function checkStoreOptions(given: PostgresStoreOptions): PostgresStoreOptions {
  const fail = (problem: string): never => {
    throw new LockConfigError(`postgresStore: ${problem}.`);
  };
  if (typeof given === 'string') fail('the options must be an object: postgresStore({ url })');
  if (typeof given !== 'object' || given === null) fail('the options must be an object');
  if ('connect' in given || ('query' in given && 'options' in given)) fail('a pool is passed as postgresStore({ pool })');
  const options = defined(given);
  for (const name of Object.keys(options)) {
    if (OF_CLIENT.includes(name)) fail(`"${name}" is an option of pg: write postgresStore({ pool: new Pool({ ${name} }) })`);
    if (!Object.hasOwn(CHECKS, name)) throw unknownOption(name, 'postgresStore', Object.keys(CHECKS));
  }
  checkOptions(options, 'postgresStore', CHECKS);
  const sources = SOURCES.filter((name) => name in options);
  if (sources.length !== 1) fail(`give exactly one of ${SOURCES.join(', ')}, not ${sources.join(' and ') || 'none'}`);
  for (const name of ['prepare', 'max'] as const) {
    if (name in options && !('url' in options)) fail(`"${name}" is only for "url", not ${inspect(options[name])}`);
  }
  return options;
}

function isPool(value: unknown): boolean {
  const { connect, options } = Object(value) as Partial<PostgresPool>;
  return typeof connect === 'function' && typeof options === 'object';
}
