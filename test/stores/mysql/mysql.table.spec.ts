import { createConnection, createPool, type Connection } from 'mysql2/promise';
import { MysqlClient } from '../../../lib/stores/mysql/mysql.client.js';
import { mysqlSchema, quoted } from '../../../lib/stores/mysql/mysql.schema.js';
import { MysqlTable } from '../../../lib/stores/mysql/mysql.table.js';
import { recordTableContract } from '../../contract/record-table.contract.js';
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
      new MysqlClient(createPool({ uri: url, connectionLimit: 4 }), 5000, true, mysqlSchema(), true),
      quoted('distributed_lock'),
    ),
  { without: ['wakeUps'], sweep: (key) => root.query('DELETE FROM distributed_lock WHERE id = ?', [Buffer.from(key)]) },
);
