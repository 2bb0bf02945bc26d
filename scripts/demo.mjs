// Sells the same stock in four ways, to many buyers at once and over several instances, and shows which ways sell what is not there.
// npm run demo -- --store cluster
// npm run demo -- --requests 10000 --concurrency 1000 --instances 3 --work 5
import { readArguments } from './arguments.mjs';
import { load } from './demo/load.mjs';
import { build, runDemo } from './demo/run.mjs';
import { openStore, STORES } from './demo/store.mjs';
import { endingOf, judge, legendOf, rowOf, tableOf, VERSIONS } from './demo/verdict.mjs';

const NUMBERS = { requests: 1000, concurrency: 100, instances: 3, work: 5, skus: 4 };
const PASSWORD = 'demo';
const USAGE = `npm run demo -- [options]
  --store <name>       ${STORES.slice(0, -1).join(', ')} or ${STORES.at(-1)}; or STORE in the environment. Default: the server of REDIS_URL or of
                       DATABASE_URL, else a redis-server on the PATH, private to the run, else files, which need no server
  --requests ${NUMBERS.requests}      for each version
  --concurrency ${NUMBERS.concurrency}    connections at once, spread over the instances
  --instances ${NUMBERS.instances}        processes
  --work ${NUMBERS.work}             milliseconds that a sale takes; one in twenty takes eight times as long
  --skus ${NUMBERS.skus}             things to sell, each with a lock of its own
  --stock <n>          units of all things together; half of the requests
  --no-build           the library and the demo are built
  --keep               leaves the shops open, each with a dashboard of its locks, until Ctrl-C`;

const known = { numbers: { ...NUMBERS, stock: undefined }, texts: { store: process.env.STORE }, flags: ['no-build', 'keep'] };
const options = readArguments(USAGE, known, (values) => {
  const { requests, concurrency, skus, work, stock = Math.floor(requests / 2) } = values;
  const store = values.store || undefined;
  if (store !== undefined && !STORES.includes(store)) throw new Error(`--store (or STORE) is one of ${STORES.join(', ')}, not ${store}.`);
  if (concurrency > requests) throw new Error('There cannot be more at once (--concurrency) than there are (--requests).');
  if (stock >= requests) throw new Error('Nobody would find anything sold out: give fewer units (--stock) than --requests.');
  if (stock < skus) throw new Error('Each thing needs a unit on its shelf: give fewer --skus, or more --stock.');
  return {
    ...values,
    store,
    shelves: new Map(Array.from({ length: skus }, (_, i) => [`sku-${i + 1}`, Math.floor((stock + i) / skus)])),
    // The naive lock lasts longer than nearly all sales, as people choose it. One in twenty outlasts it.
    naiveExpiry: 4 * work,
    slowWork: 8 * work,
  };
});

async function main(leftovers) {
  if (!options['no-build']) await build(leftovers);
  const store = await openStore(options.store, leftovers);
  console.log(store.description);
  const shops = await openShops(store, leftovers);
  const { concurrency, instances } = options;
  await load({ title: 'warm', urls: urlsOf(shops, 'none'), skus: ['apple'], requests: concurrency, concurrency });
  const rows = [];
  for (const version of VERSIONS) rows.push(await sell(version, shops));
  console.log(`\n${tableOf(rows, instances)}\n\n${legendOf(options)}\n`);
  const problems = judge(rows, instances);
  if (problems.length === 0) console.log(endingOf(rows, options.shelves));
  if (options.keep) {
    const url = shops[0].url.replace('[::1]', 'localhost');
    console.log(`The shop:      ${url}/stock/sku-1\nIts dashboard: ${url}/locks (user ops, password ${PASSWORD})\nCtrl-C ends both.`);
    await new Promise((resolve) => setInterval(resolve, 2 ** 31 - 1));
  }
  return problems;
}

async function openShops(store, leftovers) {
  const { openShop } = await import('../test/e2e/shop.ts');
  const times = { WORK_MS: options.work, SLOW_WORK_MS: options.slowWork, NAIVE_EXPIRY_MS: options.naiveExpiry };
  const dashboard = options.keep ? { DASHBOARD_PASSWORD: PASSWORD } : {};
  const env = { STORE_URL: store.url, ...times, ...dashboard };
  const opening = Array.from({ length: options.instances }, () => openShop(env));
  const end = (inHurry) => (shop) => (inHurry ? shop.kill() : shop.close());
  leftovers.add((inHurry) => Promise.all(opening.map((shop) => shop.then(end(inHurry), () => undefined))));
  return Promise.all(opening);
}

async function sell(version, shops) {
  const { requests, concurrency, shelves } = options;
  for (const [sku, units] of shelves) await shops[0].put(`/stock/${sku}`, { units });
  const result = await load({ title: version, urls: urlsOf(shops, version), skus: [...shelves.keys()], requests, concurrency });
  const left = new Map();
  for (const sku of shelves.keys()) left.set(sku, (await shops[0].get(`/stock/${sku}`)).left);
  return rowOf({ version, requests, shelves, left, ...result });
}

function urlsOf(shops, version) {
  return shops.map((shop) => `${shop.url}/stock/${version}/reduce`);
}

await runDemo(main);
