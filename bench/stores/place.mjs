import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import mysql from 'mysql2/promise';
import { startEtcd } from '../../test/support/etcd-server.ts';
import { mariadbUrl, startMariadb } from '../../test/support/mariadb-server.ts';
import { startPostgres } from '../../test/support/postgres-server.ts';
import { startZookeeper } from '../../test/support/zookeeper-server.ts';
import { startRedis } from '../measure/redis.mjs';

/**
 * A private server of a store, whose commits reach the disk, or a folder: `place`, for `openStore`, and `stop`.
 *
 * @param connections how many the databases allow, where it is more than by default
 */
export async function openPlace(store, connections) {
  if (store === 'file') {
    const place = mkdtempSync(join(tmpdir(), 'bench-'));
    return { place, stop: async () => rmSync(place, { recursive: true, force: true }) };
  }
  if (store === 'redis') {
    const server = await startRedis();
    return { place: server.url, server, stop: () => server.stop() };
  }
  if (store === 'etcd') {
    const server = await startEtcd({ durable: true });
    return { place: server.url, stop: () => server.stop() };
  }
  if (store === 'zookeeper') {
    const server = await startZookeeper({ durable: true });
    return { place: server.connectionString, stop: () => server.stop() };
  }
  if (store === 'mysql' || store === 'mysql-binlog') {
    // A binary log that is written with each commit is the default of MySQL. MariaDB has none.
    const args = store === 'mysql' ? [] : ['--log-bin', '--sync-binlog=1', '--server-id=1'];
    if (connections) args.push(`--max-connections=${connections}`);
    const server = await startMariadb({ port: 'free', durable: true, args });
    const client = await mysql.createConnection(server.connection);
    await client.query('CREATE DATABASE bench');
    await client.end();
    return { place: mariadbUrl({ ...server.connection, database: 'bench' }), stop: () => server.stop() };
  }
  const server = await startPostgres({ port: 'free', durable: true, config: connections && [`max_connections = ${connections}`] });
  return { place: server.url, stop: () => server.stop() };
}
