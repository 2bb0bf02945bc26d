// Three Redis servers as a quorum next to one of them: a lone pair, and many callers of one key in four processes. redlock 5 beside it in the same run.
//
//   npm run bench:quorum [-- --busy]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Locks } from 'nestjs-distributed-lock/core';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { refuseIfBusy } from './measure/busy.mjs';
import { startRedis } from './measure/redis.mjs';
import { rounds } from './measure/rounds.mjs';
import { median, quantile } from './measure/statistics.mjs';
import { openRedlock } from './contestants/redlock-quorum.mjs';
import { crowd } from './stores/crowd.mjs';

const PAIRS = 2000;
const LOAD = { processes: 4, callers: 25, turns: 4 };
/** Milliseconds after which a crowd is given up: its votes may be split again and again. */
const LIMIT = 30_000;

await refuseIfBusy();
const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
const ports = servers.map(({ port }) => port);
const storeOf = (port) => redisStore({ url: `redis://127.0.0.1:${port}` });
const one = new Locks(storeOf(ports[0]), { logger: false });
const three = new Locks(quorumStore(ports.map(storeOf), { quarantine: 0 }), { logger: false });
const redlock = openRedlock(ports, 0);

const pairs = {
  one: async () => (await one.acquire('key')).release(),
  quorum: async () => (await three.acquire('key')).release(),
  redlock: async () => (await redlock.acquire('redlock')).release(),
};

/** The median of the milliseconds of a pair. */
async function loneCaller(pair) {
  for (let i = 0; i < 200; i++) await pair();
  const times = [];
  for (let i = 0; i < PAIRS; i++) {
    const start = performance.now();
    await pair();
    times.push(performance.now() - start);
  }
  return quantile(times, 0.5);
}

const tell = (title, results, goals, unit) => {
  console.log(title);
  for (const [name, values] of Object.entries(results)) {
    if (values.includes(Infinity)) {
      console.log(`  ${name.padEnd(8)} given up after ${LIMIT} ms with its warm-up`);
      continue;
    }
    const ratio = median(values.map((value, round) => value / results.one[round]));
    const compared = name === 'one' ? '' : `, ÷ one server ${ratio.toFixed(2)}${goals[name] ?? ''}`;
    console.log(`  ${name.padEnd(8)} ${median(values).toFixed(unit)} ms${compared}`);
  }
};

tell('A lone acquire and release, p50', await rounds(pairs, loneCaller), { quorum: '; goal: at most 1.5' }, 3);

let splits = 0;
const folder = mkdtempSync(join(tmpdir(), 'bench-quorum-'));
const urls = ports.map((port) => `redis://127.0.0.1:${port}`);
const crowds = { one: ['redis', urls[0]], quorum: ['quorum', urls.join()], redlock: ['redlock', urls.join()] };
const givenUp = new Set();
const totals = await rounds(
  crowds,
  async ([store, place]) => {
    if (givenUp.has(store)) return Infinity;
    const { total, splitVotes } = await crowd({ store, place, counter: join(folder, 'counter'), limit: LIMIT, ...LOAD });
    if (total === Infinity) givenUp.add(store);
    splits += splitVotes;
    return total;
  },
  5,
);
rmSync(folder, { recursive: true });
tell(`${LOAD.processes} × ${LOAD.callers} callers of one key, total`, totals, { quorum: '; goal: at most 2' }, 0);
console.log(`  split votes of the quorum: ${splits}`);

await Promise.all([one.close(), three.close()]);
redlock.close();
for (const server of servers) server.stop();
