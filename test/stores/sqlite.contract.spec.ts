import initSqlJs, { type Database } from 'sql.js';
import { recordStore } from 'nestjs-distributed-lock/records';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { SqliteTable } from '../readme/sqlite-table.js';

let db: Database;
beforeAll(async () => {
  db = new (await initSqlJs()).Database();
});

wholeStoreContract('SQLite', () => recordStore(new SqliteTable(db)), { without: ['wakeUps', 'bus', 'keys'] });
