// The stores beside each other, in the same minutes: one key, sections of 1 ms. What locks do to a table of Postgres.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { begin } from './measure/begin.mjs';
import { describeMachine } from './measure/machine.mjs';
import { rounds } from './measure/rounds.mjs';
import { median } from './measure/statistics.mjs';
import { judgeStores, LOADS, tableOfStores } from './report/stores.mjs';
import { writeResults } from './report/write.mjs';
import { crowd } from './stores/crowd.mjs';
import { openPlace } from './stores/place.mjs';
import { growth, logOfRefused } from './stores/table.mjs';

const PAIRS = 100_000;
const USAGE = `stores [options]
  --rounds <n>      of each load; default: 5
  --only <stores>   beside Redis; default: postgres,mysql,mysql-binlog,etcd,file
  --write           keeps the results`;
const flags = await begin(USAGE, { numbers: { rounds: 5 }, texts: { only: 'postgres,mysql,mysql-binlog,etcd,file' }, flags: ['write'] });
const folder = mkdtempSync(join(tmpdir(), 'bench-stores-'));
const names = ['redis', ...flags.only.split(',')];
const places = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await openPlace(name)])));
const { place: postgres } = places.postgres ?? {};

const results = { machine: await describeMachine(places.redis.server), loads: {}, table: {} };
try {
  for (const [load, numbers] of Object.entries(LOADS)) results.loads[load] = await measure(numbers);
  if (postgres) {
    results.table.walOfRefused = await logOfRefused(postgres);
    results.table.growth = await growth(postgres, { pairs: PAIRS, isOld: false });
    results.table.growthBesideOld = await growth(postgres, { pairs: PAIRS, isOld: true });
    results.table.growthOfOneKey = await growth(postgres, { pairs: PAIRS / 10, keys: 1, isOld: false });
  }
} finally {
  await Promise.all(Object.values(places).map(({ stop }) => stop()));
  rmSync(folder, { recursive: true });
}
console.log(`${tableOfStores(results)}\n\n${judgeStores(results)}`);
if (flags.write) await writeResults('stores', results);

/** Rounds, each of all stores. Ratios are those of a round. */
async function measure(numbers) {
  const counter = join(folder, 'counter');
  const measured = await rounds(places, ({ place }, store) => crowd({ store, place, counter, ...numbers }), flags.rounds);
  const of = (store, key) => measured[store].map((round) => round[key]);
  const ratios = (store, key) => measured[store].map((round, index) => round[key] / measured.redis[index][key]);
  return Object.fromEntries(
    names.map((store) => [
      store,
      {
        total: median(of(store, 'total')),
        p99: median(of(store, 'p99')),
        totals: ratios(store, 'total'),
        p99s: ratios(store, 'p99'),
      },
    ]),
  );
}
