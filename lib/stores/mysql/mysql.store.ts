import type { Pool as CallbackPool } from 'mysql2';
import * as mysql from 'mysql2/promise';
import { checkOneOf, checkOptions, integerFrom, ofType, oneOf, urlWith } from '../../core/model/check-options.js';
import { configError } from '../../core/model/errors.js';
import { checkClient } from '../../core/store/check-client.js';
import { renewable, type LockStore } from '../../core/store/lock-store.js';
import { connectTimeout } from '../../core/util/clock.js';
import { recordStore } from '../records/record.store.js';
import { configOf, innerPoolOf, MysqlClient } from './mysql.client.js';
import { DEFAULT_TABLE, mysqlSchema, MysqlTable, quoted } from './mysql.table.js';

export { mysqlSchema };

/** Where the server is; exactly one of these. */
export type MysqlConnectionOptions =
  | {
      /** `mysql://user:password@host:3306/database`. */
      url: string;
      /** Connections of the store's own pool, at most. Default 4. */
      max?: number;
    }
  | {
      /** A pool of your own, of `mysql2` or `mysql2/promise`, whose options are used for connections of ours. It is not used itself. */
      pool: mysql.Pool | CallbackPool;
    };

/** Options of {@link mysqlStore}. */
export type MysqlStoreOptions = MysqlConnectionOptions & {
  /** The name of the table, also with its database. Default `distributed_lock`. */
  table?: string;
  /** `'create'`: the table is made with the first request, if it is missing. Default `'check'`: an error says what to run. */
  schema?: 'check' | 'create';
  /** Milliseconds that a single request may take, connecting included. Default 1000. */
  requestTimeout?: number;
};

const MAX = 4;
const CHECKS = {
  // mysql2 throws at other values of ssl.
  url: urlWith(/^(mysql|mariadb):\/\//i, 'mysql://localhost:3306/shop', /[?&]ssl=(\{|%7B|Amazon|false)/i, 'ssl={}'),
  max: integerFrom(1),
  pool: ofType('object'),
  table: ofType('string'),
  schema: oneOf('check', 'create'),
  requestTimeout: integerFrom(1, 2 ** 31 - 1),
};

/**
 * Locks on MySQL 8.0, MariaDB 10.6 or later. It connects with the first request. The server cannot wake waiters: those of other processes poll.
 *
 * @throws {LockConfigError} when an option is wrong, or `mysql2` is too old.
 */
export function mysqlStore(options: MysqlStoreOptions): LockStore {
  checkOptions(options, 'mysqlStore', CHECKS);
  checkClient('mysqlStore', 'mysql2', 'createPoolCluster' in mysql);
  const { table = DEFAULT_TABLE, schema = 'check', requestTimeout = 1000 } = options;
  const [name, sql] = [quoted(table), mysqlSchema({ table })];
  const makePool = poolOf(options, table, requestTimeout);
  return renewable(() => recordStore(new MysqlTable(new MysqlClient(makePool, requestTimeout, sql, schema === 'create'), name)));
}

/** The connections of a pool of the app may be busy, have a transaction open, or use another database: ours are made as its own are. */
function poolOf(options: MysqlStoreOptions, table: string, requestTimeout: number): (max?: number) => mysql.Pool {
  const { url, pool, max } = options as { url?: string; pool?: mysql.Pool | CallbackPool; max?: number };
  const fail = (problem: string): never => {
    throw configError('OPTION', `mysqlStore: ${problem}.`);
  };
  checkOneOf(options, 'mysqlStore', ['url', 'pool']);
  const needDatabase = (source: string, database: string | undefined): void => {
    if (!database && !table.includes('.')) fail(`"${source}" names no database, so "table" must, as in 'shop.${table}'`);
  };
  if (pool === undefined) {
    const { username, password, pathname } = new URL(url!);
    needDatabase('url', pathname.slice(1));
    // Before version 3.7 mysql2 leaves them encoded.
    const given = {
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
      database: decodeURIComponent(pathname.slice(1)),
    };
    return (connectionLimit = max ?? MAX) =>
      mysql.createPool({ uri: url, ...given, connectionLimit, connectTimeout: connectTimeout(requestTimeout) });
  }
  const theirs = configOf(pool);
  if (!theirs?.connectionConfig) return fail('"pool" must be a pool of mysql2');
  if ('max' in options) fail('"max" is for a "url": a pool has its own limit');
  needDatabase('pool', theirs.connectionConfig.database);
  return (connectionLimit = Math.min(MAX, theirs.connectionLimit || MAX)) => {
    const made = mysql.createPool({ connectionLimit });
    const own = innerPoolOf(made);
    // It is read for each connection: an app may have changed the password meanwhile.
    const get = (): object => {
      const { connectionConfig } = theirs;
      return Object.assign(Object.create(Object.getPrototypeOf(connectionConfig) as object) as object, connectionConfig, {
        ...{ pool: own, connectTimeout: connectTimeout(requestTimeout), queryFormat: undefined },
      });
    };
    Object.defineProperty(configOf(own), 'connectionConfig', { get });
    return made;
  };
}
