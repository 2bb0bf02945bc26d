// The stores beside each other, in the same minutes: one key, sections of 1 ms. What locks do to a table of Postgres.
//
//   npm run bench:stores [-- --busy --rounds <n> --only postgres,mysql,file --write]
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startMariadb } from '../test/support/mariadb-server.js';
import { startPostgres } from '../test/support/postgres-server.js';
import { refuseIfBusy } from './measure/busy.mjs';
import { describeMachine } from './measure/machine.mjs';
import { startRedis } from './measure/redis.mjs';
import { median } from './measure/statistics.mjs';
import { judgeStores, LOADS, tableOfStores } from './report/stores.mjs';
import { writePages } from './report/write.mjs';
import { crowd } from './stores/crowd.mjs';
import { growth, logOfRefused } from './stores/table.mjs';

const PAIRS = 100_000;
const { values: flags } = parseArgs({
  options: {
    busy: { type: 'boolean' },
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: 'postgres,mysql,file' },
    write: { type: 'boolean' },
  },
});
await refuseIfBusy();
const folder = mkdtempSync(join(tmpdir(), 'bench-stores-'));
const names = ['redis', ...flags.only.split(',')];
const [redis, postgres, mariadb] = await Promise.all([
  startRedis(),
  startPostgres({ port: 'free', durable: true }),
  names.includes('mysql') ? startMariadb({ port: 'free', durable: true }) : undefined,
]);
if (mariadb) await createDatabase(mariadb);
const places = {
  redis: `redis://127.0.0.1:${redis.port}`,
  postgres: postgres.url,
  mysql: mariadb && `mysql://root@127.0.0.1:${mariadb.port}/bench`,
  file: join(folder, 'locks'),
};

const results = { machine: await describeMachine(redis), loads: {}, table: {} };
try {
  for (const [load, numbers] of Object.entries(LOADS)) results.loads[load] = await measure(numbers);
  if (names.includes('postgres')) {
    results.table.walOfRefused = await logOfRefused(postgres.url);
    results.table.growth = await growth(postgres.url, { pairs: PAIRS, isOld: false });
    results.table.growthBesideOld = await growth(postgres.url, { pairs: PAIRS, isOld: true });
    results.table.growthOfOneKey = await growth(postgres.url, { pairs: PAIRS / 10, keys: 1, isOld: false });
  }
} finally {
  redis.stop();
  await Promise.all([postgres.stop(), mariadb?.stop()]);
  rmSync(folder, { recursive: true });
}
console.log(`${tableOfStores(results)}\n\n${judgeStores(results)}`);
if (flags.write) {
  writeFileSync(fileURLToPath(new URL('results/stores.json', import.meta.url)), `${JSON.stringify(results, undefined, 1)}\n`);
  await writePages();
}

/** Rounds, each of all stores; every other one goes backwards. Ratios are those of a round. */
async function measure(numbers) {
  const rounds = [];
  for (let round = 0; round < Number(flags.rounds); round++) {
    const measured = {};
    for (const store of round % 2 ? names.toReversed() : names) {
      measured[store] = await crowd({ store, place: places[store], counter: join(folder, 'counter'), ...numbers });
    }
    rounds.push(measured);
    const { redis: base } = measured;
    const ratios = names.map(
      (name) => `${name} ${(measured[name].total / base.total).toFixed(2)} / ${(measured[name].p99 / base.p99).toFixed(2)}`,
    );
    console.error(`${numbers.processes} × ${numbers.callers}: ${Math.round(base.total)} ms, ${ratios.join(', ')}`);
  }
  const of = (store, value) => rounds.map((round) => value(round[store], round.redis));
  return Object.fromEntries(
    names.map((store) => [
      store,
      {
        total: median(of(store, ({ total }) => total)),
        p99: median(of(store, ({ p99 }) => p99)),
        totals: of(store, ({ total }, base) => total / base.total),
        p99s: of(store, ({ p99 }, base) => p99 / base.p99),
      },
    ]),
  );
}

async function createDatabase({ connection }) {
  const { default: mysql } = await import('mysql2/promise');
  const client = await mysql.createConnection(connection);
  await client.query('CREATE DATABASE bench');
  await client.end();
}
