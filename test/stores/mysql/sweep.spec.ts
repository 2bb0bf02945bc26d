import { createConnection, type Connection, createPool } from 'mysql2/promise';
import { mysqlSchema } from 'nestjs-distributed-lock/mysql';
import { MysqlClient } from '../../../lib/stores/mysql/mysql.client.js';
import { MysqlTable } from '../../../lib/stores/mysql/mysql.table.js';
import { sharedMariadb } from '../../support/shared-server.js';

let root: Connection;
let table: MysqlTable;

beforeAll(async () => {
  const { connection, url } = await sharedMariadb();
  root = await createConnection(connection);
  await root.query(mysqlSchema());
  table = new MysqlTable(new MysqlClient(createPool({ uri: url }), 30_000, true, mysqlSchema(), false), 'distributed_lock');
});
afterAll(async () => {
  await table.close();
  await root.end();
});

it('a sweep deletes all rows that ended long ago, not only the first page', async () => {
  const rows = Array.from({ length: 20_000 }, (_, i) => [`key ${i}`, 1, null, i === 0 ? 8e15 : 0, 1]);
  await root.query('INSERT INTO distributed_lock (id, version, record, ends_at, fence) VALUES ?', [rows]);
  await table.sweep();
  const [left] = await root.query('SELECT CAST(id AS CHAR) AS id FROM distributed_lock');
  expect(left).toEqual([{ id: 'key 0' }]);
});
