import { expect } from 'expect';
import { afterEach, beforeEach, describe, it } from 'node:test';
import initSqlJs from 'sql.js';
import { recordTableContract } from 'nestjs-distributed-lock/testing/store';
import { SqliteTable } from './sqlite-table.js';

const runner = { describe, it, beforeEach, afterEach, expect };
const db = new (await initSqlJs()).Database();

recordTableContract('SQLite', () => new SqliteTable(db), { without: ['wakeUps', 'keys'], runner });
