// The tests: `node scripts/test.mjs [--store postgres] [arguments of jest …]`. With a store, only its suites run, and only its servers start.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { serversOf } from './services.mjs';

const jest = fileURLToPath(import.meta.resolve('jest/bin/jest'));
const [store, args] = takeStore(process.argv.slice(2));
if (store !== undefined && !Object.hasOwn(serversOf, store)) {
  console.error(`Unknown store '${store}'. Known: ${Object.keys(serversOf).join(', ')}`);
  process.exit(2);
}
const only = store === undefined ? [] : ['--testPathPatterns', `test/stores/${store}[/.]`];
const env = store === undefined ? process.env : { ...process.env, TEST_STORE: store };
const { status } = spawnSync(process.execPath, [jest, ...args, ...only], { stdio: 'inherit', env });
process.exit(status ?? 1);

/** `--store name` or `--store=name`, and the other arguments. */
function takeStore(given) {
  const index = given.findIndex((argument) => /^--store(=|$)/.test(argument));
  if (index < 0) return [undefined, given];
  const [, value] = given[index].split('=');
  return [value ?? given[index + 1] ?? '', given.toSpliced(index, value === undefined ? 2 : 1)];
}
