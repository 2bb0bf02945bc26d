import { driver, optionsOf, PoolConnection, type PostgresConnection, type PostgresPool } from './postgres.connection.js';
import { checkStoreOptions, type PostgresStoreOptions } from './postgres.options.js';
import { QueryConnection } from './postgres.query.js';
import { PostgresStatements } from './postgres.statements.js';
import { PostgresTable } from './postgres.table.js';

export const TABLE = 'distributed_lock';
const MAX = 4;
/** Idle connections end, and keep no process alive; we end late statements. No settings of the session: poolers refuse them. */
const LIMITS = { min: 0, query_timeout: 0, idleTimeoutMillis: 20_000, allowExitOnIdle: true, keepAlive: true };

/** @throws {LockConfigError} when an option is wrong. */
export function openTable(given: PostgresStoreOptions): PostgresTable {
  const options = checkStoreOptions(given);
  const { table = TABLE, schema = 'check', requestTimeout = 1000 } = options;
  const connection = connectionOf(options, requestTimeout);
  return new PostgresTable(connection, new PostgresStatements(table), requestTimeout, schema === 'create');
}

/** What the options say how to ask. The connections of a pool of the app may be busy, or have a transaction open: ours are made as its own are. */
function connectionOf(options: PostgresStoreOptions, requestTimeout: number): PostgresConnection {
  const listenAt = options.listen?.connectionString;
  if ('query' in options) return new QueryConnection(options.query, requestTimeout, listenAt);
  const source: { readonly max?: number } = 'pool' in options ? optionsOf(options.pool) : { connectionString: options.url };
  const { prepare = 'url' in options, max = Math.min(MAX, source.max ?? MAX) } = options as { prepare?: boolean; max?: number };
  const makePool = async (): Promise<PostgresPool> => {
    const { Pool } = await driver();
    return new Pool({ ...source, ...LIMITS, max, connectionTimeoutMillis: requestTimeout });
  };
  return new PoolConnection({ requestTimeout, max, prepare, listenAt }, makePool);
}
