import pg from 'pg';
import { postgresSchema } from '../../../../lib/stores/postgres/postgres.store.js';
import { postgresUrl, startPostgres } from '../../../support/postgres-server.js';
import { POSTGRES } from '../../../support/tcp-proxy-framing.js';
import { DatabaseStage } from '../database/stage.js';
import { startProxies } from '../proxies.js';
import type { StageOptions } from '../store.js';
import { postgresOperator, ROLE } from './operator.js';

/** A server on TCP with the table, and a role that may do with it what a worker must. */
export async function startStage(options: StageOptions): Promise<DatabaseStage> {
  const server = await startPostgres({ port: 'free' });
  const client = new pg.Client(server.connection);
  await client.connect();
  await client.query(postgresSchema());
  await client.query(`CREATE ROLE ${ROLE} LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock TO ${ROLE}`);
  await client.end();
  const proxies = await startProxies(options, () => server.port!, POSTGRES);
  const urlAt = (port: number): string => postgresUrl({ ...server.connection, port, user: ROLE });
  // In the names of statements that are prepared, too.
  return new DatabaseStage(server, postgresOperator(server.connection), proxies, 'distributed_lock', urlAt);
}
