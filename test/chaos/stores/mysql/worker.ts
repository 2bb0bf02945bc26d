import { createPool } from 'mysql2/promise';
import { MysqlClient } from '../../../../lib/stores/mysql/mysql.client.js';
import { mysqlStore } from '../../../../lib/stores/mysql/mysql.store.js';
import { MysqlTable } from '../../../../lib/stores/mysql/mysql.table.js';
import { recordStore, type RecordTable } from '../../../../lib/stores/records/record.store.js';
import type { Random } from '../../random.js';
import { misuse } from '../database/misuse.js';
import { watchListeners } from '../listeners.js';
import type { OpenedStore } from '../store.js';

export interface MysqlTarget {
  url: string;
}

/** A store over a pool of its own, or over one that the worker lends it. */
export function open(target: unknown, random: Random, breakTable?: (table: RecordTable) => RecordTable): OpenedStore {
  const { url } = target as MysqlTarget;
  const requestTimeout = random.pick([300, 600, 1_000]);
  if (!breakTable && random.chance(0.6)) {
    const max = random.int(2, 4);
    return { store: mysqlStore({ url, max, requestTimeout }), detail: `url, of ${max}` };
  }
  const pool = createPool({ uri: url, connectionLimit: 4, connectTimeout: requestTimeout });
  const listeners = watchListeners(pool);
  const makePool = (connectionLimit = 4) => createPool({ uri: url, connectionLimit, connectTimeout: requestTimeout });
  const table = (): RecordTable => new MysqlTable(new MysqlClient(makePool, requestTimeout, '', false), '`distributed_lock`');
  const store = breakTable ? recordStore(breakTable(table())) : mysqlStore({ pool, requestTimeout });
  const end = misuse({ max: 4, take: () => pool.getConnection() }, random, 2_000);
  const closeLent = async (): Promise<void> => {
    await end();
    await pool.end();
  };
  return { store, detail: 'pool', listeners, closeLent };
}
