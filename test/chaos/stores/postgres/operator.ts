import pg from 'pg';
import type { PostgresConnection } from '../../../support/postgres-server.js';
import type { Operator } from '../database/stage.js';
import type { StoredRecord } from '../records/leftovers.js';

const CLOCK = 'extract(epoch FROM clock_timestamp()) * 1000';
const TABLE = 'distributed_lock';
/** The workers' role. */
export const ROLE = 'worker';

/** An operator of Postgres, with a connection of its own for each act, which no proxy stands before. */
export function postgresOperator(connection: PostgresConnection): Operator {
  async function ask(text: string, values: unknown[] = []): Promise<Record<string, unknown>[]> {
    return withClient(async (client) => (await client.query<Record<string, unknown>>(text, values)).rows);
  }
  async function withClient<T>(act: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client(connection);
    // The server may be killed meanwhile: what was asked rejects.
    client.on('error', () => undefined);
    await client.connect();
    try {
      return await act(client);
    } finally {
      await client.end();
    }
  }
  const hold = (lock: string) => (pause: () => Promise<void>) =>
    withClient(async (client) => {
      await client.query('BEGIN');
      await client.query(lock);
      await pause();
      await client.query('COMMIT');
    });
  async function kill(which = ''): Promise<void> {
    await ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 ${which}`, [ROLE]);
  }
  return {
    killClients: () => kill(),
    killListeners: () => kill("AND query LIKE 'LISTEN %'"),
    holdRows: hold(`SELECT key FROM ${TABLE} FOR UPDATE`),
    holdTable: hold(`LOCK TABLE ${TABLE}`),
    forbid: async (rights) => void (await ask(`REVOKE ${rights} ON ${TABLE} FROM ${ROLE}`)),
    allow: async (rights) => void (await ask(`GRANT ${rights} ON ${TABLE} TO ${ROLE}`)),
    async sweep(endedFor) {
      await (endedFor === 0 ? ask(`DELETE FROM ${TABLE}`) : ask(`DELETE FROM ${TABLE} WHERE ends_at < ${CLOCK} - $1`, [endedFor]));
    },
    deleteRow: async (key) => void (await ask(`DELETE FROM ${TABLE} WHERE key = $1`, [key])),
    rewrite: async () => void (await ask(`VACUUM FULL ${TABLE}`)),
    async lasting() {
      const [clock] = await ask(`SELECT (${CLOCK})::float8 AS time`);
      const rows = await ask(`SELECT key, record, ends_at::float8 AS "endsAt" FROM ${TABLE} WHERE ends_at > ${CLOCK} ORDER BY key`);
      return { records: rows as unknown as StoredRecord[], time: Number(clock!['time']) };
    },
  };
}
