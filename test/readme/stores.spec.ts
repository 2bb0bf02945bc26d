import type { LockStore, StoreFeature } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { read } from '../support/markdown.js';
import { sharedPostgres } from '../support/shared-server.js';
import { ofThreeServers } from './quorum.js';
import { locksOnPostgres } from './stores.js';

const directory = mkdtempSync(join(tmpdir(), 'stores-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** What the first cell of a row of the README's table means. */
const ROWS: Record<string, readonly StoreFeature[]> = {
  'mutex, read/write lock, multi-lock, leader election': ['mutex', 'readWriteLock', 'multiLock', 'leaderElection'],
  'semaphore, count-down latch': ['semaphore', 'countDownLatch'],
  inspect: ['inspect'],
  'wakes waiters': ['wakeUps'],
};
const STORES: Record<string, () => LockStore> = {
  '/redis': () => redisStore({ url: 'redis://127.0.0.1:1' }),
  '/postgres': () => locksOnPostgres().store,
  '/mysql': () => mysqlStore({ url: 'mysql://127.0.0.1:1/shop' }),
  '/quorum': () => ofThreeServers(),
  '/file': () => fileStore({ directory }),
  '/memory': () => memoryStore(),
};

describe('the table of stores in the README', () => {
  const lines = read('README.md').split('\n');
  const start = lines.findIndex((line) => line.startsWith('| from `nestjs-distributed-lock/'));
  const [head, , , ...rows] = lines.slice(start, lines.indexOf('', start)).map(cellsOf);

  it('has a column for each store, and a row for each feature', () => {
    expect(head!.slice(1)).toEqual(Object.keys(STORES).map((entry) => `\`${entry}\``));
    expect(rows.map(([name]) => name)).toEqual(Object.keys(ROWS));
  });

  it.each(Object.keys(STORES))('says what the store of %s supports', async (entry) => {
    const store = STORES[entry]!();
    const column = Object.keys(STORES).indexOf(entry) + 1;
    const said = Object.fromEntries(rows.map((cells) => [cells[0], cells[column] === 'yes']));
    const seen = Object.fromEntries(Object.entries(ROWS).map(([name, features]) => [name, features.every((each) => store.supports(each))]));
    expect(seen).toEqual(said);
    await store.close();
  });
});

it('the example of the README locks', async () => {
  const before = process.env.DATABASE_URL;
  process.env.DATABASE_URL = (await sharedPostgres()).url;
  const locks = locksOnPostgres();
  if (before === undefined) delete process.env.DATABASE_URL;
  else process.env.DATABASE_URL = before;
  expect(await locks.using('order:42', async () => 'locked')).toBe('locked');
  await locks.close();
});

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
