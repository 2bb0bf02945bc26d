// Starts three instances of the leader sample, kills the leader with -9, freezes the next for longer than its lease, kills another, asks the last to step
// down, and shows who leads when.
// npm run demo:leader -- --key-timeout 3000
import { judge } from './demo/leader-verdict.mjs';
import { readLeaderOptions } from './demo/leader-options.mjs';
import { build, runDemo } from './demo/run.mjs';
import { openStore } from './demo/store.mjs';

async function main(options, leftovers) {
  const store = await openStore({ store: 'redis' }, leftovers);
  console.log(store.description);
  if (options.build) await build(leftovers);
  const { Stage } = await import('./demo/leader-stage.mjs');
  const stage = new Stage(store, options, leftovers);
  await stage.open();
  const changes = [];
  let failure;
  try {
    for (const how of ['kill -9', 'SIGSTOP', 'kill -9', 'SIGTERM']) changes.push(await stage.change(how));
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

await runDemo((leftovers) => main(readLeaderOptions(process.argv.slice(2)), leftovers));
