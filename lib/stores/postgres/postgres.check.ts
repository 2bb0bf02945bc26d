import { configError } from '../../core/model/errors.js';
import type { PostgresConnection } from './postgres.connection.js';

/** Servers that speak its protocol, by what `version()` says. Aurora DSQL names no platform. */
const OTHERS = { CockroachDB: /CockroachDB/, YugabyteDB: /-YB-/, 'Aurora DSQL': /DSQL|^PostgreSQL [\d.]+$/ };
/** The name of the transaction, the same for each of its statements. A SAVEPOINT would show it by an error in the server's log, and some clocks are coarse. */
const TRANSACTION = `SELECT virtualtransaction AS name FROM pg_locks WHERE locktype = 'virtualxid' AND pid = pg_backend_pid()`;

/** @throws {LockConfigError} where a lock would not be safe. */
export async function checkServer(connection: PostgresConnection): Promise<void> {
  const one = async (text: string) => (await connection.ask(text, []))[0] ?? {};
  const { version } = await one('SELECT version() AS version');
  const [other] = Object.entries(OTHERS).find(([, said]) => said.test(String(version))) ?? [];
  if (other !== undefined)
    throw configError(
      'STORE',
      `postgresStore: ${other} is not supported: locks need NOTIFY, COLLATE "C" and the single clock of a PostgreSQL server.`,
    );
  // Connections of our own have no transaction open.
  if (connection.atOnce !== undefined) return;
  const { name } = await one(TRANSACTION);
  if (name === undefined || name !== (await one(TRANSACTION))['name']) return;
  throw configError(
    'STORE',
    'postgresStore: "query" runs inside a transaction, where nobody sees a lock before the commit. Pass the query of the data source or the pool.',
  );
}
