// Starts three instances of scripts/demo/leader, kills the leader with -9, freezes the next for longer than its lease, kills another, asks the last to step
// down, and shows who leads when.
// npm run demo:leader -- --key-timeout 3000
import { readArguments } from './arguments.mjs';
import { judge } from './demo/leader-verdict.mjs';
import { build, runDemo } from './demo/run.mjs';
import { openStore } from './demo/store.mjs';

const NUMBERS = { 'key-timeout': 3000, work: 50 };
const USAGE = `npm run demo:leader -- [options]
  --key-timeout ${NUMBERS['key-timeout']}   milliseconds: the leader's lease
  --work ${NUMBERS.work}            milliseconds that the leader works for each line in the ledger
  --no-build           the library and the demo are built`;

const { 'key-timeout': keyTimeout, work, 'no-build': isBuilt } = readArguments(USAGE, { numbers: NUMBERS, flags: ['no-build'] });

await runDemo(async (leftovers) => {
  const store = await openStore('redis', leftovers);
  console.log(store.description);
  if (!isBuilt) await build(leftovers);
  const { Stage } = await import('./demo/leader-stage.mjs');
  const stage = new Stage(store, { keyTimeout, work }, leftovers);
  await stage.open();
  const changes = [];
  let failure;
  try {
    for (const how of ['kill -9', 'SIGSTOP', 'kill -9', 'SIGTERM']) changes.push(await stage.change(how));
  } catch (error) {
    failure = error; // the ledger may show why
  }
  const { lines, problems } = judge({ changes, ...(await stage.close()) }, keyTimeout);
  if (failure) problems.push(failure.message, stage.logs());
  console.log(`\n${lines.join('\n')}`);
  return problems;
});
