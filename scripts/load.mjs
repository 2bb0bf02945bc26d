// Buys apples of a running shop, more than there are, and shows whether it sells any of them twice.
// node scripts/load.mjs http://localhost:3000 http://localhost:3001
import { readArguments } from './arguments.mjs';
import { load } from './demo/load.mjs';
import { rowOf, tableOf } from './demo/verdict.mjs';

const NUMBERS = { requests: 1000, concurrency: 100 };
const USAGE = `node scripts/load.mjs <url of an instance> … [options]
  --requests ${NUMBERS.requests}      spread over the instances; the shelf is filled with half as many apples
  --concurrency ${NUMBERS.concurrency}    connections at once`;

const { urls, requests, concurrency } = readArguments(USAGE, { numbers: NUMBERS, allowPositionals: true }, (values, positionals) => {
  if (positionals.length === 0 || !positionals.every((url) => URL.canParse(url)))
    throw new Error('Give the URL of a shop, such as http://localhost:3000.');
  if (values.concurrency > values.requests) throw new Error('There cannot be more at once (--concurrency) than there are (--requests).');
  return { ...values, urls: positionals.map((url) => new URL(url).origin) };
});

const SKU = 'apple';
const shelf = `${urls[0]}/stock/${SKU}`;
const shelves = new Map([[SKU, Math.floor(requests / 2)]]);

const filled = await fetch(shelf, {
  method: 'PUT',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ units: shelves.get(SKU) }),
});
if (!filled.ok) throw new Error(`${shelf} answers ${filled.status}: ${await filled.text()}`);
const result = await load({ title: 'load', urls: urls.map((url) => `${url}/reduceStock`), skus: [SKU], requests, concurrency });
const left = new Map([[SKU, (await (await fetch(shelf)).json()).left]]);
const row = rowOf({ version: SKU, requests, shelves, left, ...result });
console.log(`\n${tableOf([row])}`);
process.exitCode = row.isExact && row.errors === 0 ? 0 : 1;
