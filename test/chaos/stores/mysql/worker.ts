import { createPool } from 'mysql2/promise';
import { MysqlClient } from '../../../../lib/stores/mysql/mysql.client.js';
import { mysqlStore } from '../../../../lib/stores/mysql/mysql.store.js';
import { MysqlTable } from '../../../../lib/stores/mysql/mysql.table.js';
import { recordStore, type RecordTable } from '../../../../lib/stores/records/record.store.js';
import { misuse } from '../database/misuse.js';
import type { DatabaseTarget } from '../database/stage.js';
import { watchListeners } from '../listeners.js';
import type { OpenedStore, Opening } from '../store.js';

/** A store over a pool of its own, or over one that the worker lends it. */
export function open({ url }: DatabaseTarget, { requestTimeout, random, breakTable }: Opening): OpenedStore {
  if (!breakTable && random.chance(0.6)) {
    const max = random.int(2, 4);
    return { store: mysqlStore({ url, max, requestTimeout }), detail: `url, of ${max}` };
  }
  const pool = createPool({ uri: url, connectionLimit: 4, connectTimeout: requestTimeout });
  const listeners = watchListeners(pool);
  const makePool = (connectionLimit = 4) => createPool({ uri: url, connectionLimit, connectTimeout: requestTimeout });
  const table = (): RecordTable => new MysqlTable(new MysqlClient(makePool, requestTimeout, '', false), '`distributed_lock`');
  const store = breakTable ? recordStore(breakTable(table())) : mysqlStore({ pool, requestTimeout });
  const closeLent = misuse({ max: 4, take: () => pool.getConnection(), end: () => pool.end() }, random, 2_000);
  return { store, detail: 'pool', listeners, closeLent };
}
