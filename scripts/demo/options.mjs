import { parseArgs } from 'node:util';

const NUMBERS = { requests: 1000, concurrency: 100, instances: 3, work: 5, skus: 4 };

const STORES = ['redis', 'cluster', 'postgres', 'file'];

const USAGE = `npm run demo -- [options]
  --store <name>       ${STORES.slice(0, -1).join(', ')} or ${STORES.at(-1)}; or STORE in the environment. Default: the server of REDIS_URL or of
                       DATABASE_URL, else a redis-server on the PATH, private to the run, else files, which need no server
  --requests ${NUMBERS.requests}      for each version
  --concurrency ${NUMBERS.concurrency}    connections at once, spread over the instances
  --instances ${NUMBERS.instances}        processes
  --work ${NUMBERS.work}             milliseconds that a sale takes; one in twenty takes eight times as long
  --skus ${NUMBERS.skus}             things to sell, each with a lock of its own
  --stock <n>          units of all things together; half of the requests
  --no-build           the library and the sample app are built`;

/** Says what is wrong and ends the process, or what can be said if that is asked. */
export function readOptions(args) {
  try {
    return read(args);
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`);
    return process.exit(1);
  }
}

function read(args) {
  const text = Object.fromEntries([...Object.keys(NUMBERS), 'stock', 'store'].map((name) => [name, { type: 'string' }]));
  const flags = Object.fromEntries(['no-build', 'help'].map((name) => [name, { type: 'boolean', default: false }]));
  const { values } = parseArgs({ args, options: { ...text, ...flags } });
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const number = (name, fallback) => wholeNumber(name, values[name] ?? fallback);
  const options = Object.fromEntries(Object.entries(NUMBERS).map(([name, fallback]) => [name, number(name, fallback)]));
  const { requests, concurrency, skus, work } = options;
  const store = (values.store ?? process.env.STORE) || undefined;
  if (store !== undefined && !STORES.includes(store)) throw new Error(`--store (or STORE) is one of ${STORES.join(', ')}, not ${store}.`);
  const stock = number('stock', Math.floor(requests / 2));
  if (concurrency > requests) throw new Error('There cannot be more at once (--concurrency) than there are (--requests).');
  if (stock >= requests) throw new Error('Nobody would find anything sold out: give fewer units (--stock) than --requests.');
  if (stock < skus) throw new Error('Each thing needs a unit on its shelf: give fewer --skus, or more --stock.');
  return {
    ...options,
    store,
    build: !values['no-build'],
    shelves: new Map(Array.from({ length: skus }, (_, i) => [`sku-${i + 1}`, Math.floor((stock + i) / skus)])),
    // The naive lock lasts longer than nearly all sales, as people choose it. One in twenty outlasts it.
    naiveExpiry: 4 * work,
    slowWork: 8 * work,
  };
}

function wholeNumber(name, value) {
  if (!/^[1-9]\d{0,8}$/.test(String(value))) throw new Error(`--${name} must be a whole number of at least 1, not ${value}.`);
  return Number(value);
}
