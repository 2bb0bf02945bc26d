import pg from 'pg';
import { openTable } from '../../../../lib/stores/postgres/postgres.open.js';
import { postgresStore } from '../../../../lib/stores/postgres/postgres.store.js';
import { recordStore } from '../../../../lib/stores/records/record.store.js';
import type { Random } from '../../random.js';
import { type LentConnection, misuse } from '../database/misuse.js';
import type { DatabaseTarget } from '../database/stage.js';
import { watchListeners } from '../listeners.js';
import type { OpenedStore, Opening } from '../store.js';

/** A store over a pool of its own, over one that the worker lends it, or over the `query` of an ORM. */
export function open({ url }: DatabaseTarget, { requestTimeout, random, breakTable }: Opening): OpenedStore {
  if (breakTable) return { store: recordStore(breakTable(openTable({ url, requestTimeout }))) };
  const way = random.pick(['url', 'url', 'pool', 'query'] as const);
  if (way === 'url') {
    const [prepare, max] = [random.chance(0.7), random.int(2, 4)];
    return { store: postgresStore({ url, requestTimeout, prepare, max }), detail: `url, ${prepare ? '' : 'not '}prepared, of ${max}` };
  }
  return lent(way, url, requestTimeout, random);
}

/** The settings that the guarantees ask of a lent pool: no wait is without end. */
function lent(way: 'pool' | 'query', url: string, requestTimeout: number, random: Random): OpenedStore {
  const limits = { connectionTimeoutMillis: requestTimeout, query_timeout: requestTimeout, keepAlive: true };
  const pool = new pg.Pool({ connectionString: url, max: 4, ...limits });
  pool.on('error', () => undefined);
  const listeners = watchListeners(pool);
  const store =
    way === 'pool'
      ? postgresStore({ pool, requestTimeout })
      : postgresStore({ query: (text, values) => pool.query(text, values), listen: { connectionString: url }, requestTimeout });
  const closeLent = misuse({ max: 4, take: () => taken(pool), end: () => pool.end() }, random, way === 'pool' ? 2_000 : 200);
  return { store, detail: way, listeners, closeLent };
}

async function taken(pool: pg.Pool): Promise<LentConnection> {
  const client = await pool.connect();
  client.on('error', ignore);
  const release = (): void => {
    client.off('error', ignore);
    client.release();
  };
  return { query: (text) => client.query(text), release };
}

function ignore(): void {}
