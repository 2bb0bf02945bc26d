// #region contracts
import initSqlJs, { type Database } from 'sql.js';
import { recordTableContract } from 'nestjs-distributed-lock/testing/store';
import { SqliteTable } from './sqlite-table.js';

let db: Database;
beforeAll(async () => {
  db = new (await initSqlJs()).Database();
});

recordTableContract('SQLite', () => new SqliteTable(db), { without: ['wakeUps', 'keys'] });
// #endregion
