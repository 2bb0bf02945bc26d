import pg from 'pg';
import { postgresSchema } from '../../../../lib/stores/postgres/postgres.store.js';
import { postgresUrl, startPostgres } from '../../../support/postgres-server.js';
import { POSTGRES } from '../../../support/tcp-proxy-framing.js';
import { startProxy, type TcpProxy } from '../../../support/tcp-proxy.js';
import { DatabaseStage } from '../database/stage.js';
import type { StageOptions } from '../store.js';
import { postgresOperator, ROLE } from './operator.js';
import type { PostgresTarget } from './worker.js';

/** A server on TCP with the table, and a role that may do with it what a worker must. */
export async function startStage({ slots, random }: StageOptions): Promise<DatabaseStage> {
  const server = await startPostgres({ port: 'free' });
  const client = new pg.Client(server.connection);
  await client.connect();
  await client.query(postgresSchema());
  await client.query(`CREATE ROLE ${ROLE} LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON distributed_lock TO ${ROLE}`);
  await client.end();
  const proxies: TcpProxy[] = [];
  for (let slot = 0; slot < slots; slot++) {
    const jitter = random.fork(`proxy ${slot}`);
    proxies.push(await startProxy({ port: server.port! }, () => jitter.next(), POSTGRES));
  }
  const targetAt = (port: number): PostgresTarget => ({ url: postgresUrl({ ...server.connection, port, user: ROLE }) });
  // In the names of statements that are prepared, too.
  return new DatabaseStage(server, postgresOperator(server.connection), proxies, 'distributed_lock', targetAt);
}
