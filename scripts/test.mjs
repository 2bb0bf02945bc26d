// The tests: `node scripts/test.mjs [--store postgres] [--client node-redis] [arguments of jest …]`. With a store, only its suites run, and only its
// servers start. With a client, the suites of Redis run over that package.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { serversOf } from './services.mjs';

const jest = fileURLToPath(import.meta.resolve('jest/bin/jest'));
const CLIENTS = ['ioredis', 'node-redis', 'node-redis-6'];
const [client, others] = take('client', process.argv.slice(2));
const [given, args] = take('store', others);
const store = given ?? (client === undefined ? undefined : 'redis');
if (store !== undefined && !Object.hasOwn(serversOf, store)) {
  console.error(`Unknown store '${store}'. Known: ${Object.keys(serversOf).join(', ')}`);
  process.exit(2);
}
if (client !== undefined && (!CLIENTS.includes(client) || store !== 'redis')) {
  console.error(`Unknown client '${client}' of ${store}. Known of redis: ${CLIENTS.join(', ')}`);
  process.exit(2);
}
const only = store === undefined ? [] : ['--testPathPatterns', `test/stores/${store}[-/.]`];
const env = { ...process.env, ...(store !== undefined && { TEST_STORE: store }), ...(client !== undefined && { REDIS_CLIENT: client }) };
const { status } = spawnSync(process.execPath, [jest, ...args, ...only], { stdio: 'inherit', env });
process.exit(status ?? 1);

/** `--name value` or `--name=value`, and the other arguments. */
function take(name, given) {
  const index = given.findIndex((argument) => argument === `--${name}` || argument.startsWith(`--${name}=`));
  if (index < 0) return [undefined, given];
  const [, value] = given[index].split('=');
  return [value ?? given[index + 1] ?? '', given.toSpliced(index, value === undefined ? 2 : 1)];
}
