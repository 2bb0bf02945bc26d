import type { Pool as CallbackPool } from 'mysql2';
import { createPool, type Pool } from 'mysql2/promise';
import { checkOptions, integerFrom, ofType, oneOf } from '../../core/model/check-options.js';
import { LockConfigError } from '../../core/model/errors.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { recordStore } from '../records/record.store.js';
import { MysqlClient } from './mysql.client.js';
import { DEFAULT_TABLE, mysqlSchema, quoted } from './mysql.schema.js';
import { MysqlTable } from './mysql.table.js';

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
      /** A pool of your own, of `mysql2` or `mysql2/promise`. It is never closed by us. */
      pool: Pool | CallbackPool;
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

const CHECKS = {
  url: ofType('string'),
  max: integerFrom(1),
  pool: ofType('object'),
  table: ofType('string'),
  schema: oneOf('check', 'create'),
  requestTimeout: integerFrom(1, 2 ** 31 - 1),
};

/**
 * Locks on MySQL 8.0, MariaDB 10.6 or later. It connects with the first request. The server cannot wake waiters: those of other processes poll.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function mysqlStore(options: MysqlStoreOptions): LockStore {
  checkOptions(options, 'mysqlStore', CHECKS);
  const { table = DEFAULT_TABLE, schema = 'check', requestTimeout = 1000 } = options;
  const [name, sql] = [quoted(table), mysqlSchema({ table })];
  const { pool, isOwned } = poolOf(options, requestTimeout);
  return recordStore(new MysqlTable(new MysqlClient(pool, requestTimeout, isOwned, sql, schema === 'create'), name));
}

function poolOf(options: MysqlStoreOptions, requestTimeout: number): { pool: Pool; isOwned: boolean } {
  const { url, pool, max = 4 } = options as { url?: string; pool?: Pool | CallbackPool; max?: number };
  const fail = (problem: string): never => {
    throw new LockConfigError(`mysqlStore: ${problem}.`);
  };
  if ((url === undefined) === (pool === undefined)) fail(`give exactly one of url and pool, not ${url === undefined ? 'none' : 'both'}`);
  if (pool === undefined) {
    if (!URL.canParse(url!)) fail('"url" must be a URL such as mysql://user:password@localhost:3306/shop');
    return { pool: createPool({ uri: url, connectionLimit: max, connectTimeout: requestTimeout, enableKeepAlive: true }), isOwned: true };
  }
  if (typeof pool.getConnection !== 'function') fail('"pool" must be a pool of mysql2');
  if ('max' in options) fail('"max" is for a "url": a pool has its own limit');
  return { pool: 'promise' in pool ? pool.promise() : pool, isOwned: false };
}
