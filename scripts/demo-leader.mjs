// Starts three instances of the leader sample, kills the leader with -9 twice and asks the third to step down, and shows who leads when.
// npm run demo:leader -- --key-timeout 3000
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { judge } from './demo/leader-verdict.mjs';
import { readLeaderOptions } from './demo/leader-options.mjs';
import { Leftovers } from './demo/leftovers.mjs';
import { openStore } from './demo/store.mjs';

register(); // what starts the processes is TypeScript, shared with the tests
process.chdir(fileURLToPath(new URL('../', import.meta.url)));
const leftovers = new Leftovers();

const NO_STORE = `This needs a Redis that several processes share, and there is none: the embedded store serves one process only, so it has no other to take over.
Do one of these:
  Debian, Ubuntu  apt-get install redis-server
  macOS           brew install redis
  Docker          docker run --rm -p 6379:6379 redis:7-alpine, and set REDIS_URL=redis://localhost:6379
  anywhere        set REDIS_URL to one that you have`;

async function main(options) {
  const store = await openStore({ embedded: false }, leftovers);
  if (!store.isShared) {
    console.error(NO_STORE);
    return false;
  }
  console.log(store.description);
  if (options.build) build();
  const { Stage } = await import('./demo/leader-stage.mjs');
  const stage = new Stage(store, options, leftovers);
  await stage.open();
  const changes = [];
  let failure;
  try {
    for (const how of ['kill -9', 'kill -9', 'SIGTERM']) changes.push(await stage.change(how));
  } catch (error) {
    failure = error; // the ledger may tell why
  }
  const evidence = await stage.close();
  const { lines, problems } = judge({ changes, ...evidence }, options);
  if (failure) problems.push(failure.message, stage.logs());
  console.log(`\n${lines.join('\n')}`);
  for (const problem of problems) console.error(problem);
  return problems.length === 0;
}

function build() {
  const npm = (...args) => execFileSync('npm', ['run', '--silent', ...args], { stdio: ['ignore', 2, 'inherit'] });
  console.error('Building the library and the sample app…');
  npm('build');
  npm('build:sample');
}

let interrupted = false;
for (const [signal, status] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 })) {
  process.once(signal, () => {
    interrupted = true;
    void leftovers.clear(true).finally(() => process.exit(status));
  });
}

try {
  process.exitCode = (await main(readLeaderOptions(process.argv.slice(2)))) ? 0 : 1;
} catch (error) {
  if (!interrupted) console.error(error);
  process.exitCode = 1;
} finally {
  await leftovers.clear();
}
