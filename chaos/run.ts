// Puts the locks under load and faults, and judges what happened. `npm run chaos -- --help`
import { rmSync } from 'node:fs';
import { prove } from './prove.js';
import { HELP, readFlags, type Flags } from './run/flags.js';
import { run } from './run/run.js';
import { tellFailure, tellSuccess } from './run/tell.js';

const flags = readFlags();
if (flags === 'help') console.log(HELP);
else process.exitCode = (await (flags.prove ? prove(flags.break) : main(flags))) ? 0 : 1;

async function main({ seed, minutes, kinds, groups, store, workers, keep, ...rest }: Flags): Promise<boolean> {
  console.log(`seed ${seed}: ${kinds.join(', ')}; faults: ${groups.join(', ') || 'none'}`);
  const result = await run({ seed, length: minutes * 60_000, kinds, groups, store, workers, break: rest.break });
  if (result.violations.length > 0) tellFailure(result);
  else tellSuccess(result);
  if (result.violations.length === 0 && !keep) rmSync(result.folder, { recursive: true });
  else console.log(`history: ${result.folder}`);
  return result.violations.length === 0;
}
