// What locks do to a table of Postgres: the log that a refused try writes, and what the table grows to.
import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import pg from 'pg';
import { median } from '../measure/statistics.mjs';

const TRIES = 200;
const ROUNDS = 5;
const KEYS = 10_000;
const AT_ONCE = 256;

/** Bytes of the write-ahead log that one refused `tryAcquire` costs. */
export async function logOfRefused(url) {
  const { ask, open, close } = await client(url);
  const [holder, other] = [open(), open()];
  await holder.acquire('taken', { keyTimeout: 600_000 });
  await other.tryAcquire('taken');
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = (await ask('SELECT pg_current_wal_insert_lsn() AS at'))[0].at;
    for (let i = 0; i < TRIES; i++) if (await other.tryAcquire('taken')) throw new Error('The key was granted twice');
    const [{ bytes }] = await ask('SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1)::float8 AS bytes', [before]);
    rounds.push(bytes / TRIES);
  }
  await close();
  return median(rounds);
}

/** How many times as large as after one pair for each key the table is after so many pairs, while somebody leaves a transaction open or not. */
export async function growth(url, { pairs, keys = KEYS, isOld }) {
  const { ask, open, close } = await client(url);
  const locks = open();
  await ask('DROP TABLE IF EXISTS distributed_lock');
  let next = 0;
  const take = async (end) => {
    const caller = async () => {
      while (next < end) await (await locks.acquire(`key-${next++ % keys}`)).release();
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, keys) }, caller));
  };
  const size = async () => (await ask("SELECT pg_total_relation_size('distributed_lock')::float8 AS bytes"))[0].bytes;
  await take(keys);
  const first = await size();
  const idle = new pg.Client(url);
  await idle.connect();
  if (isOld) await idle.query('BEGIN; CREATE TEMP TABLE mine (id int)');
  await take(keys + pairs);
  const last = await size();
  await idle.end();
  await close();
  return { first, last, times: last / first };
}

async function client(url) {
  const admin = new pg.Client(url);
  await admin.connect();
  const all = [];
  return {
    ask: async (text, values) => (await admin.query(text, values)).rows,
    open() {
      const locks = new Locks(postgresStore({ url, schema: 'create' }), { logger: false });
      all.push(locks);
      return locks;
    },
    async close() {
      await Promise.all(all.map((locks) => locks.close()));
      await admin.end();
    },
  };
}
