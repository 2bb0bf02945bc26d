import { driver, PoolConnection, type PostgresConnection, type PostgresPool } from './postgres.connection.js';
import { checkStoreOptions, type PostgresStoreOptions } from './postgres.options.js';
import { QueryConnection } from './postgres.query.js';
import { PostgresStatements } from './postgres.statements.js';
import { PostgresTable } from './postgres.table.js';

export const TABLE = 'distributed_lock';
/** Connections of a pool of `pg` that says nothing of it. */
const MAX_OF_PG = 10;
/** Milliseconds until a connection of our own that is idle is closed. */
const IDLE = 20_000;

/** @throws {LockConfigError} when an option is wrong. */
export function openTable(given: PostgresStoreOptions): PostgresTable {
  const options = checkStoreOptions(given);
  const { table = TABLE, schema = 'check', requestTimeout = 1000 } = options;
  const connection = connectionOf(options, requestTimeout);
  return new PostgresTable(connection, new PostgresStatements(table), requestTimeout, schema === 'create');
}

/** What the options say how to ask. */
function connectionOf(options: PostgresStoreOptions, requestTimeout: number): PostgresConnection {
  const listenAt = options.listen?.connectionString;
  if ('query' in options) return new QueryConnection(options.query, requestTimeout, listenAt);
  if ('pool' in options) {
    const { max = MAX_OF_PG } = options.pool.options as { max?: number };
    return new PoolConnection({ requestTimeout, max, prepare: false, listenAt }, options.pool, undefined);
  }
  const { url, prepare = true, max = 4 } = options;
  // No settings of the session: poolers refuse them.
  const limits = { max, connectionTimeoutMillis: requestTimeout, idleTimeoutMillis: IDLE, allowExitOnIdle: true, keepAlive: true };
  const makePool = async (): Promise<PostgresPool> => {
    const { Pool } = await driver();
    return new Pool({ connectionString: url, ...limits });
  };
  return new PoolConnection({ requestTimeout, max, prepare, listenAt }, undefined, makePool);
}
