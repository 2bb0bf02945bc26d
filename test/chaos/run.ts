// Puts the locks under load and faults, and judges what happened. `npm run nightly -- chaos --help`
import { rmSync, writeFileSync } from 'node:fs';
import type { Kind } from './history/entry.js';
import { prove } from './prove.js';
import { HELP, readFlags, type Flags } from './run/flags.js';
import { run, type RunOptions } from './run/run.js';
import { CI_SCENES, scenesOf } from './run/scenes.js';
import { summarize, tellSummaries, type Summary } from './run/summary.js';
import { tellFailure, tellSuccess } from './run/tell.js';
import { stores } from './stores.js';

// Whatever was started ends on exit, which a signal alone does not cause.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));
const flags = readFlags();
if (flags === 'help') console.log(HELP);
else process.exit((await (flags.prove ? prove(flags.break, flags.stores) : runAll(flags))) ? 0 : 1);

async function runAll(all: Flags): Promise<boolean> {
  const summaries: Summary[] = [];
  let isWell = true;
  for (const options of runsOf(all)) {
    console.log(`seed ${options.seed}: ${options.kinds.join(', ')} on ${options.store}; faults of: ${options.groups.join(', ') || 'none'}`);
    const result = await run(options);
    const hasFailed = result.violations.length > 0;
    if (hasFailed) tellFailure(result);
    else tellSuccess(result);
    if (!hasFailed && !all.keep) rmSync(result.folder, { recursive: true });
    else if (!hasFailed) console.log(`history: ${result.folder}`);
    isWell &&= !hasFailed;
    summaries.push(summarize(result));
  }
  tellSummaries(summaries);
  if (all.report !== undefined) writeFileSync(all.report, `[\n${summaries.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`);
  return isWell;
}

function runsOf({ seed, minutes, kinds, groups, stores: names, workers, each, ci, break: broken }: Flags): RunOptions[] {
  const common = { seed, workers, break: broken };
  const kindsOf = (store: string): Kind[] => kinds.filter((kind) => stores[store]!.kinds?.includes(kind) ?? true);
  const options = <S extends { store: string }>(scene: S): typeof common & S & { kinds: Kind[] } => ({
    ...common,
    kinds: kindsOf(scene.store),
    ...scene,
  });
  if (ci) return CI_SCENES.filter(({ store }) => names?.includes(store) ?? true).map(options);
  const scenes = (names ?? ['redis']).flatMap((store) => {
    const possible = groups.filter((group) => stores[store]!.groups.includes(group));
    return scenesOf(possible, each).map((scene) => ({ store, ...scene }));
  });
  const shares = scenes.reduce((sum, { share }) => sum + share, 0);
  return scenes.map(({ share, ...scene }) => options({ ...scene, length: Math.round((minutes * 60_000 * share) / shares) }));
}
