import { createPool as createCallbackPool } from 'mysql2';
import { createConnection, createPool, type Connection } from 'mysql2/promise';
import { Locks } from 'nestjs-distributed-lock/core';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { MysqlClient } from '../../../lib/stores/mysql/mysql.client.js';
import { mysqlSchema, MysqlTable, quoted } from '../../../lib/stores/mysql/mysql.table.js';
import { recordTableContract } from 'nestjs-distributed-lock/testing/store';
import { sharedMariadb } from '../../support/shared-server.js';

let url: string;
let root: Connection;
beforeAll(async () => {
  ({ url } = await sharedMariadb());
  root = await createConnection(url);
});
afterAll(() => root.end());

recordTableContract(
  'MariaDB',
  () =>
    new MysqlTable(
      new MysqlClient((connectionLimit = 4) => createPool({ uri: url, connectionLimit }), 5000, mysqlSchema(), true),
      quoted('distributed_lock'),
    ),
  { without: ['wakeUps'], sweep: (key) => root.query('DELETE FROM distributed_lock WHERE id = ?', [Buffer.from(key)]) },
);

it.each([
  [
    'mysql2',
    () => createCallbackPool({ uri: url, connectionLimit: 2, charset: 'latin1', bigNumberStrings: true, supportBigNumbers: true }),
  ],
  ['mysql2/promise', () => createPool({ uri: url, connectionLimit: 2, rowsAsArray: true, dateStrings: true, namedPlaceholders: true })],
])('a pool of %s, however it is set, serves and stays open', async (_name, make) => {
  const pool = make();
  const locks = new Locks(mysqlStore({ pool, schema: 'create' }), { logger: false });
  const lease = await locks.acquire('ü🔒', { label: 'ü🔒' });
  expect((await locks.inspect('ü🔒')).holders).toMatchObject([{ owner: lease.owner }]);
  expect(lease.fencingToken).toBeGreaterThan(1.7e15);
  await lease.release();
  await locks.close();
  const ended = 'promise' in pool ? pool.promise() : pool;
  expect((await ended.query('SELECT 1 AS one'))[0]).toHaveLength(1);
  await ended.end();
});
