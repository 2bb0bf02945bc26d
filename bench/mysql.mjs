// Locks on MariaDB next to what they must cost at least: two bare UPDATEs, each a commit. On a private server whose commits reach the disk.
//
//   npm run bench:mysql [-- --busy]
import mysql from 'mysql2/promise';
import { Locks } from 'nestjs-distributed-lock/core';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { mariadbUrl, startMariadb } from '../test/support/mariadb-server.ts';
import { refuseIfBusy } from './measure/busy.mjs';
import { rounds } from './measure/rounds.mjs';
import { median, quantile } from './measure/statistics.mjs';

const PAIRS = 400;
const CALLERS = 256;
/** Milliseconds for which all callers are busy. */
const SPAN = 1000;
const CONNECTIONS = 4;

await refuseIfBusy();
const server = await startMariadb({ durable: true });
const root = await mysql.createConnection(server.connection);
await root.query('CREATE DATABASE shop');
await root.end();
const url = mariadbUrl({ ...server.connection, database: 'shop' });
const locks = new Locks(mysqlStore({ url, schema: 'create', max: CONNECTIONS }), { logger: false });
const pool = mysql.createPool({ uri: url, connectionLimit: CONNECTIONS });
await pool.query('CREATE TABLE bare (id varbinary(100) PRIMARY KEY, n int NOT NULL) ENGINE = InnoDB');
await pool.query('INSERT INTO bare VALUES ?', [Array.from({ length: CALLERS }, (_, i) => [`key ${i}`, 0])]);
let fresh = 0;

async function bare(caller) {
  for (let i = 0; i < 2; i++) await pool.query('UPDATE bare SET n = n + 1 WHERE id = ?', [`key ${caller}`]);
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
report('MariaDB, a lone acquire and release, p50 in ms', 3, lone, { ours: '; goal: at most 1.7' });
const many = await rounds({ bare, ours, 'ours, new keys': news }, manyCallers, 5);
report(`MariaDB, ${CALLERS} callers of keys of their own, pairs/s over ${CONNECTIONS} connections`, 0, many, {});

await locks.close();
await pool.end();
await server.stop();
