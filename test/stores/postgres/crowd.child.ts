// Increments a counter under a lock, by reading and writing it, and keeps the token of each time. Ends when it is told how often.
import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import pg from 'pg';
import { tellParent } from '../../support/child.js';

const [url, callers, times] = process.argv.slice(2) as [string, string, string];
const pool = new pg.Pool({ connectionString: url, max: 2 });
const locks = new Locks(postgresStore({ url }), { logger: false });
const options = { keyTimeout: 5_000, waitTimeout: Infinity };

async function increment(): Promise<void> {
  await locks.mutex('crowd').using(async (lease) => {
    const { rows } = await pool.query<{ n: number }>('SELECT n FROM crowd');
    // The token keeps a write out that comes after the lease was lost.
    const guarded = 'UPDATE crowd SET n = $1, token = $2 WHERE token < $2';
    const { rowCount } = await pool.query(guarded, [rows[0]!.n + 1, lease.fencingToken]);
    if (rowCount === 1) await pool.query('INSERT INTO crowd_entries VALUES ($1, $2)', [rows[0]!.n + 1, lease.fencingToken]);
  }, options);
}

tellParent({ type: 'started' });
await Promise.all(
  Array.from({ length: Number(callers) }, async () => {
    for (let i = 0; i < Number(times); i++) await increment();
  }),
);
await locks.close();
await pool.end();
tellParent({ type: 'done' });
