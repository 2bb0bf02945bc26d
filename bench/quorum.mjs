// Three Redis servers as a quorum next to one of them: a lone pair, and many callers of one key in four processes. redlock 5 beside it in the same run.
//
//   npm run bench:quorum [-- --busy --write]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Locks } from 'nestjs-distributed-lock/core';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { refuseIfBusy } from './measure/busy.mjs';
import { describeMachine } from './measure/machine.mjs';
import { startRedis } from './measure/redis.mjs';
import { rounds } from './measure/rounds.mjs';
import { median, quantile } from './measure/statistics.mjs';
import { judgeServers, ratiosOf } from './report/servers.mjs';
import { writeServers } from './report/write.mjs';
import { openRedlock } from './contestants/redlock-quorum.mjs';
import { crowd } from './stores/crowd.mjs';

const PAIRS = 2000;
const LOAD = { processes: 4, callers: 25, turns: 4 };
/** Milliseconds after which a crowd is given up: its votes may be split again and again. */
const LIMIT = 30_000;

const { values: flags } = parseArgs({ options: { busy: { type: 'boolean' }, write: { type: 'boolean' } } });
await refuseIfBusy();
const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
const results = { machine: await describeMachine(servers[0]), ratios: {}, redlock: {} };
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

const tell = (key, title, measured, digits) => {
  console.log(title);
  for (const [name, values] of Object.entries(measured)) {
    const shown = values.includes(Infinity) ? `given up after ${LIMIT} ms with its warm-up` : `${median(values).toFixed(digits)} ms`;
    console.log(`  ${name.padEnd(8)} ${shown}`);
  }
  results.ratios[key] = ratiosOf(measured.quorum, measured.one);
  results.redlock[key] = ratiosOf(measured.redlock, measured.one);
};

tell('pair', 'A lone acquire and release, p50', await rounds(pairs, loneCaller), 3);

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
tell('crowd', `${LOAD.processes} × ${LOAD.callers} callers of one key, total`, totals, 0);
results.ratios.splitVotes = [splits];
console.log(judgeServers({ quorum: results }));

await Promise.all([one.close(), three.close()]);
redlock.close();
for (const server of servers) server.stop();
if (flags.write) await writeServers('quorum', results);
