// Three Redis servers as a quorum next to one of them: a lone pair, and many callers of one key in four processes. redlock 5 beside it in the same run.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Locks } from 'nestjs-distributed-lock/core';
import { openRedlock } from './contestants/redlock-quorum.mjs';
import { begin } from './measure/begin.mjs';
import { describeMachine } from './measure/machine.mjs';
import { startRedis } from './measure/redis.mjs';
import { printRounds, rounds, timeOfPair } from './measure/rounds.mjs';
import { judgeServers, ratiosOf } from './report/servers.mjs';
import { writeResults } from './report/write.mjs';
import { crowd } from './stores/crowd.mjs';
import { openStore } from './stores/open.mjs';

const LOAD = { processes: 4, callers: 25, turns: 4 };
/** Milliseconds after which a crowd is given up: its votes may be split again and again. */
const LIMIT = 30_000;

const { write } = await begin('quorum [options]\n  --write   keeps the results', { flags: ['write'] });
const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
const results = { machine: await describeMachine(servers[0]), ratios: {}, redlock: {} };
const urls = servers.map(({ url }) => url);
const [one, three] = await Promise.all(
  [
    ['redis', urls[0]],
    ['quorum', urls.join()],
  ].map(async ([name, place]) => new Locks(await openStore(name, place), { logger: false })),
);
const ports = servers.map(({ port }) => port);
const redlock = openRedlock(ports, 0);

const report = (key, title, measured, digits) => {
  printRounds(title, measured, digits);
  results.ratios[key] = ratiosOf(measured.quorum, measured.one);
  results.redlock[key] = ratiosOf(measured.redlock, measured.one);
};

const pairs = {
  one: async () => (await one.acquire('key')).release(),
  quorum: async () => (await three.acquire('key')).release(),
  redlock: async () => (await redlock.acquire('redlock')).release(),
};
report('pair', 'A lone acquire and release, p50 in ms', await rounds(pairs, (pair) => timeOfPair(pair, 2000, 200)), 3);

let splits = 0;
const folder = mkdtempSync(join(tmpdir(), 'bench-quorum-'));
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
report(
  'crowd',
  `${LOAD.processes} × ${LOAD.callers} callers of one key, total in ms; given up after ${LIMIT} ms with its warm-up`,
  totals,
  0,
);
results.ratios.splitVotes = [splits];
console.log(judgeServers({ quorum: results }));

await Promise.all([one.close(), three.close()]);
redlock.close();
for (const server of servers) await server.stop();
if (write) await writeResults('quorum', results);
