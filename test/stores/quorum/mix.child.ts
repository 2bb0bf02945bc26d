// Callers of one process who want one key of Redis and Postgres servers, and add to a counter that only the fence guards. Ends when all are done.
import type { RedisOptions } from 'ioredis';
import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { quorumStore, type QuorumStoreOptions } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import pg from 'pg';
import { tellParent } from '../../support/child.js';

export interface MixArgs {
  /** Of each member: of Redis, or of Postgres. */
  members: ({ redis: RedisOptions } | { postgres: string })[];
  quorum: QuorumStoreOptions;
  counter: string;
  key: string;
  callers: number;
  turns: number;
}
export type MixMessage = { type: 'ready' } | { type: 'done' };

const { members, quorum, counter, key, callers, turns } = JSON.parse(process.argv[2]!) as MixArgs;
const pool = new pg.Pool({ connectionString: counter, max: 2 });
const stores = members.map((member): LockStore =>
  'redis' in member ? redisStore({ options: member.redis }) : postgresStore({ url: member.postgres }),
);
const locks = new Locks(quorumStore(stores, quorum), { logger: false });
const options = { keyTimeout: quorum.quarantine || 4_000, waitTimeout: Infinity, retryInterval: 500 };

/** The token keeps a write out that comes after the lease was lost. */
async function increment(token: number): Promise<boolean> {
  const { rows } = await pool.query<{ n: number }>('SELECT n FROM mix');
  const { rowCount } = await pool.query('UPDATE mix SET n = $1, token = $2 WHERE token < $2', [rows[0]!.n + 1, token]);
  if (rowCount === 1) await pool.query('INSERT INTO mix_entries VALUES ($1, $2)', [rows[0]!.n + 1, token]);
  return rowCount === 1;
}

/** A fault may take a lease away, and the majority for a moment. */
async function turn(): Promise<void> {
  for (;;) {
    const isDone = await locks
      .using(key, (lease) => increment(lease.fencingToken!), options)
      .catch((error: Error & { transient?: boolean }) => {
        if (error.transient !== true && error.name !== 'LockLostError') throw error;
        return false;
      });
    if (isDone) return;
  }
}

process.once('message', () => {
  const calls = Array.from({ length: callers }, async () => {
    for (let done = 0; done < turns; done++) await turn();
  });
  void Promise.all(calls).then(async () => {
    await locks.close();
    await pool.end();
    tellParent({ type: 'done' });
    process.disconnect();
  });
});
tellParent({ type: 'ready' });
