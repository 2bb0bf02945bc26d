import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createPool } from 'mysql2/promise';
import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { mysqlSchema } from 'nestjs-distributed-lock/mysql';
import type { QueryRunner } from 'typeorm';
import { blocksOf } from '../support/markdown.js';
import { sharedMariadb } from '../support/shared-server.js';
import { byDirectory, byPool, byUrl, DistributedLock1700000000001 } from './mysql-and-file.js';

async function serves(store: LockStore): Promise<void> {
  const locks = new Locks(store, { logger: false });
  await using lease = await locks.acquire('order:42');
  lease.assertHeld();
  expect(await locks.tryAcquire('order:42', { reentrant: false })).toBeNull();
  await lease.release();
  await locks.close();
}

describe('docs/mysql.md', () => {
  it('is right about its table, its migration, a URL and a pool', async () => {
    const { url } = await sharedMariadb();
    process.env.DATABASE_URL = url;
    const pool = createPool(url);
    const runner = { query: (sql: string) => pool.query(sql) } as unknown as QueryRunner;
    await new DistributedLock1700000000001().up(runner);
    await serves(byUrl());
    await serves(byPool(pool));
    await new DistributedLock1700000000001().down(runner);
    await pool.end();
    expect(blocksOf('docs/mysql.md').map(({ text }) => text.trim())).toContain(mysqlSchema());
  });
});

it('docs/file.md is right about its directory', async () => {
  process.env.LOCK_DIRECTORY = mkdtempSync(join(tmpdir(), 'locks-'));
  await serves(byDirectory());
  rmSync(process.env.LOCK_DIRECTORY, { recursive: true });
});
