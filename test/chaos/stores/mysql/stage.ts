import mysql from 'mysql2/promise';
import { mysqlSchema } from '../../../../lib/stores/mysql/mysql.store.js';
import { startMariadb } from '../../../support/mariadb-server.js';
import { MYSQL } from '../../../support/tcp-proxy-framing.js';
import { DatabaseStage } from '../database/stage.js';
import { startProxies } from '../proxies.js';
import type { StageOptions } from '../store.js';
import { mysqlOperator, setUp, USER } from './operator.js';

/** A MariaDB on TCP with the table, and a user who may do with it what a worker must. */
export async function startStage(options: StageOptions): Promise<DatabaseStage> {
  const server = await startMariadb({ port: 'free' });
  const client = await mysql.createConnection(server.connection);
  for (const text of setUp(mysqlSchema())) await client.query(text);
  await client.end();
  const proxies = await startProxies(options, () => server.port!, MYSQL);
  const urlAt = (port: number): string => `mysql://${USER}@127.0.0.1:${port}/chaos`;
  const change = (request: Buffer): boolean => request.includes('UPDATE') || request.includes('INSERT');
  return new DatabaseStage(server, mysqlOperator(server.connection), proxies, change, urlAt);
}
