// Sells the same stock in four ways, to many buyers at once and over several instances, and shows which ways sell what is not there.
// npm run demo -- --store cluster
// npm run demo -- --requests 10000 --concurrency 1000 --instances 3 --work 5
import { load } from './demo/load.mjs';
import { readOptions } from './demo/options.mjs';
import { build, runDemo } from './demo/run.mjs';
import { openStore } from './demo/store.mjs';
import { legendOf, tableOf } from './demo/table.mjs';
import { judge, rowOf, VERSIONS } from './demo/verdict.mjs';

async function main(options, leftovers) {
  if (options.build) await build(leftovers);
  const store = await openStore(options, leftovers);
  console.log(store.description);
  const { instances } = options;
  const shops = await openShops(instances, store, options, leftovers);
  const { concurrency } = options;
  await load({ title: 'warm', urls: urlsOf(shops, 'none'), skus: ['apple'], requests: concurrency, concurrency });
  const rows = [];
  for (const version of VERSIONS) rows.push(await sell(version, shops, options));
  console.log(`\n${tableOf(rows, instances)}\n\n${legendOf(rows, instances, options)}\n`);
  const problems = judge(rows, instances);
  for (const problem of problems) console.error(problem);
  return problems.length === 0;
}

async function openShops(instances, store, { work, slowWork, naiveExpiry }, leftovers) {
  const { openShop } = await import('../test/e2e/shop.ts');
  const times = { WORK_MS: work, SLOW_WORK_MS: slowWork, NAIVE_EXPIRY_MS: naiveExpiry };
  const env = { REDIS_URL: '', REDIS_CLUSTER: '', DATABASE_URL: '', SHOP_NAMESPACE: '', ...store.env, ...times };
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

await runDemo((leftovers) => main(readOptions(process.argv.slice(2)), leftovers));
