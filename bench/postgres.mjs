// Locks on Postgres next to what they must cost at least: two bare UPDATEs, each a commit. On a private server whose commits reach the disk.
//
//   npm run bench:postgres [-- --busy]
import { Locks } from 'nestjs-distributed-lock/core';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import pg from 'pg';
import { startPostgres } from '../test/support/postgres-server.ts';
import { refuseIfBusy } from './measure/busy.mjs';
import { rounds } from './measure/rounds.mjs';
import { median, quantile } from './measure/statistics.mjs';

const PAIRS = 400;
const CALLERS = 256;
/** Milliseconds for which all callers are busy. */
const SPAN = 1000;
const CONNECTIONS = 4;

await refuseIfBusy();
const server = await startPostgres({ durable: true });
const locks = new Locks(postgresStore({ url: server.url, schema: 'create', max: CONNECTIONS }), { logger: false });
const pool = new pg.Pool({ ...server.connection, max: CONNECTIONS });
await pool.query('CREATE TABLE bare (key text PRIMARY KEY, n int NOT NULL) WITH (fillfactor = 50)');
await pool.query("INSERT INTO bare SELECT 'key ' || i, 0 FROM generate_series(0, $1::int - 1) i", [CALLERS]);
const update = { name: 'bare', text: 'UPDATE bare SET n = n + 1 WHERE key = $1' };
let fresh = 0;

async function bare(caller) {
  for (let i = 0; i < 2; i++) await pool.query({ ...update, values: [`key ${caller}`] });
}
const ours = async (caller) => (await locks.acquire(`key ${caller}`)).release();
const news = async () => (await locks.acquire(`new ${++fresh}`)).release();

/** The median of the milliseconds of a pair. */
async function loneCaller(pair) {
  const times = [];
  for (let i = 0; i < PAIRS; i++) {
    const start = performance.now();
    await pair(0);
    times.push(performance.now() - start);
  }
  return quantile(times, 0.5);
}

/** Pairs in a second of callers that each have a key. */
async function manyCallers(pair) {
  let pairs = 0;
  const start = performance.now();
  const end = start + SPAN;
  const caller = async (n) => {
    for (; performance.now() < end; pairs++) await pair(n);
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => caller(n)));
  return (pairs * 1000) / (performance.now() - start);
}

function report(title, digits, results, goals) {
  console.log(title);
  for (const [name, values] of Object.entries(results)) {
    const ratios = values.map((value, round) => value / results.bare[round]);
    const all = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
    const ratio = name === 'bare' ? '' : `, ÷ bare ${median(ratios).toFixed(2)} (rounds: ${all})${goals[name] ?? ''}`;
    console.log(`  ${name.padEnd(14)} ${median(values).toFixed(digits)}${ratio}`);
  }
}

const lone = await rounds({ bare, ours, 'ours, new keys': news }, loneCaller);
report('Postgres, a lone acquire and release, p50 in ms', 3, lone, { ours: '; goal: at most 1.2' });
const many = await rounds({ bare, ours, 'ours, new keys': news }, manyCallers, 5);
report(`Postgres, ${CALLERS} callers of keys of their own, pairs/s over ${CONNECTIONS} connections`, 0, many, {
  ours: '; goal: at least 4',
});

await locks.close();
await pool.end();
await server.stop();
