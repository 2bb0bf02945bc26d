// Sells the same stock in four ways, to many buyers at once and over several instances, and shows which ways sell what is not there.
// npm run demo -- --requests 10000 --concurrency 1000 --instances 3 --work 5
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { Leftovers } from './demo/leftovers.mjs';
import { load } from './demo/load.mjs';
import { readOptions } from './demo/options.mjs';
import { openStore } from './demo/store.mjs';
import { legendOf, tableOf } from './demo/table.mjs';
import { judge, rowOf, VERSIONS } from './demo/verdict.mjs';

register(); // what starts the processes is TypeScript, shared with the tests
process.chdir(fileURLToPath(new URL('../', import.meta.url)));
const leftovers = new Leftovers();

async function main(options) {
  if (options.build) build();
  const store = await openStore(options, leftovers);
  console.log(store.description);
  const instances = store.isShared ? options.instances : 1;
  if (instances < options.instances) console.log('What is in the memory of one process serves one instance, so there is only one.');
  const shops = await openShops(instances, store, options);
  const { concurrency } = options;
  await load({ title: 'warm', urls: urlsOf(shops, 'none'), skus: ['apple'], requests: concurrency, concurrency });
  const rows = [];
  for (const version of VERSIONS) rows.push(await sell(version, shops, options));
  console.log(`\n${tableOf(rows, instances)}\n\n${legendOf(rows, instances, options)}\n`);
  const problems = judge(rows, instances);
  for (const problem of problems) console.error(problem);
  return problems.length === 0;
}

function build() {
  const npm = (...args) => execFileSync('npm', ['run', '--silent', ...args], { stdio: ['ignore', 2, 'inherit'] });
  console.error('Building the library and the sample app…');
  npm('build');
  npm('build:sample');
}

async function openShops(instances, store, { work, naiveExpiry }) {
  const { openShop } = await import('../test/e2e/shop.ts');
  const env = { REDIS_URL: store.url, SHOP_NAMESPACE: store.namespace, WORK_MS: work, NAIVE_EXPIRY_MS: naiveExpiry };
  const shops = Array.from({ length: instances }, () => {
    const opening = openShop(env);
    const end = (inHurry) => (shop) => (inHurry ? shop.kill() : shop.close());
    leftovers.add((inHurry) => opening.then(end(inHurry), () => undefined));
    return opening;
  });
  return Promise.all(shops);
}

async function sell(version, shops, { requests, concurrency, shelves }) {
  for (const [sku, units] of shelves) await shops[0].put(`/stock/${sku}`, { units });
  const result = await load({ title: version, urls: urlsOf(shops, version), skus: [...shelves.keys()], requests, concurrency });
  const left = new Map();
  for (const sku of shelves.keys()) left.set(sku, (await shops[0].get(`/stock/${sku}`)).left);
  return rowOf({ version, requests, shelves, left, ...result });
}

function urlsOf(shops, version) {
  return shops.map((shop) => `${shop.url}/stock/${version}/reduce`);
}

let interrupted = false;
for (const [signal, status] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
  process.once(signal, () => {
    interrupted = true;
    void leftovers.clear(true).finally(() => process.exit(status));
  });
}

try {
  process.exitCode = (await main(readOptions(process.argv.slice(2)))) ? 0 : 1;
} catch (error) {
  if (!interrupted) console.error(error);
  process.exitCode = 1;
} finally {
  await leftovers.clear();
}
