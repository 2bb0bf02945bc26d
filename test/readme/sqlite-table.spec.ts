import initSqlJs, { type Database } from 'sql.js';
import { Locks } from 'nestjs-distributed-lock/core';
import { recordStore } from 'nestjs-distributed-lock/records';
import { recordTableContract } from 'nestjs-distributed-lock/testing/store';
import { SqliteTable } from './sqlite-table.js';

let db: Database;
beforeAll(async () => {
  db = new (await initSqlJs()).Database();
});
afterAll(() => db.close());

describe('a table of your own', () => {
  recordTableContract('SQLite', () => new SqliteTable(db), { without: ['wakeUps', 'keys'] });

  it('makes a store', async () => {
    const locks = new Locks(recordStore(new SqliteTable(db)));
    await locks.using('order:42', ({ fencingToken }) => expect(fencingToken).toBeGreaterThan(1e15));
    expect(locks.store.supports('semaphore')).toBe(true);
    expect(locks.store.supports('wakeUps')).toBe(false);
    await locks.close();
  });
});
