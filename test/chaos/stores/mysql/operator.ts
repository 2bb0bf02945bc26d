import mysql, { type Connection, type RowDataPacket } from 'mysql2/promise';
import type { MariadbConnection } from '../../../support/mariadb-server.js';
import type { Operator } from '../database/stage.js';
import type { StoredRecord } from '../records/leftovers.js';

const CLOCK = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000)";
const TABLE = 'chaos.distributed_lock';
/** The workers' user. */
export const USER = 'worker';
const ACCOUNT = `'${USER}'@'127.0.0.1'`;

/** An operator of MariaDB, with a connection of its own for each act, which no proxy stands before. */
export function mysqlOperator(connection: MariadbConnection): Operator {
  async function withClient<T>(act: (client: Connection) => Promise<T>): Promise<T> {
    const client = await mysql.createConnection(connection);
    try {
      return await act(client);
    } finally {
      await client.end();
    }
  }
  const ask = (text: string, values: unknown[] = []): Promise<RowDataPacket[]> =>
    withClient(async (client) => (await client.query<RowDataPacket[]>(text, values))[0]);
  const hold = (begin: string[], end: string) => (pause: () => Promise<void>) =>
    withClient(async (client) => {
      for (const text of begin) await client.query(text);
      await pause();
      await client.query(end);
    });
  return {
    async killClients() {
      const clients = await ask('SELECT id FROM information_schema.processlist WHERE user = ?', [USER]);
      // Some have ended by themselves meanwhile.
      for (const { id } of clients) await ask(`KILL ${id}`).catch(() => undefined);
    },
    holdRows: hold(['BEGIN', `SELECT id FROM ${TABLE} FOR UPDATE`], 'COMMIT'),
    holdTable: hold([`LOCK TABLES ${TABLE} WRITE`], 'UNLOCK TABLES'),
    forbid: async (rights) => void (await ask(`REVOKE ${rights} ON ${TABLE} FROM ${ACCOUNT}`)),
    allow: async (rights) => void (await ask(`GRANT ${rights} ON ${TABLE} TO ${ACCOUNT}`)),
    async sweep(endedFor) {
      await (endedFor === 0 ? ask(`DELETE FROM ${TABLE}`) : ask(`DELETE FROM ${TABLE} WHERE ends_at < ${CLOCK} - ?`, [endedFor]));
    },
    deleteRow: async (key) => void (await ask(`DELETE FROM ${TABLE} WHERE id = ?`, [key])),
    rewrite: async () => void (await ask(`ALTER TABLE ${TABLE} FORCE`)),
    async lasting() {
      const [clock] = await ask(`SELECT ${CLOCK} + 0e0 AS time`);
      const text = `SELECT CONVERT(id USING utf8mb4) AS \`key\`, record, ends_at AS endsAt FROM ${TABLE} WHERE ends_at > ${CLOCK} ORDER BY id`;
      return { records: (await ask(text)) as unknown as StoredRecord[], time: Number(clock!['time']) };
    },
  };
}

/** Statements that the operator runs before the workers come. */
export function setUp(schema: string): string[] {
  return [
    'CREATE DATABASE chaos',
    'USE chaos',
    schema,
    `CREATE USER ${ACCOUNT}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${TABLE} TO ${ACCOUNT}`,
  ];
}
