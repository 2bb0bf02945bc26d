import mysql from 'mysql2/promise';
import { mysqlSchema } from '../../../../lib/stores/mysql/mysql.store.js';
import { startMariadb } from '../../../support/mariadb-server.js';
import { MYSQL } from '../../../support/tcp-proxy-framing.js';
import { startProxy, type TcpProxy } from '../../../support/tcp-proxy.js';
import { DatabaseStage } from '../database/stage.js';
import type { StageOptions } from '../store.js';
import { mysqlOperator, setUp, USER } from './operator.js';
import type { MysqlTarget } from './worker.js';

/** A MariaDB on TCP with the table, and a user who may do with it what a worker must. */
export async function startStage({ slots, random }: StageOptions): Promise<DatabaseStage> {
  const server = await startMariadb({ port: 'free' });
  const client = await mysql.createConnection(server.connection);
  for (const text of setUp(mysqlSchema())) await client.query(text);
  await client.end();
  const proxies: TcpProxy[] = [];
  for (let slot = 0; slot < slots; slot++) {
    const jitter = random.fork(`proxy ${slot}`);
    proxies.push(await startProxy({ host: '127.0.0.1', port: server.port! }, () => jitter.next(), MYSQL));
  }
  const targetAt = (port: number): MysqlTarget => ({ url: `mysql://${USER}@127.0.0.1:${port}/chaos` });
  const change = (request: Buffer): boolean => request.includes('UPDATE') || request.includes('INSERT');
  return new DatabaseStage(server, mysqlOperator(server.connection), proxies, change, targetAt);
}
