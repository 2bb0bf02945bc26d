import { readArguments } from '../../scripts/arguments.mjs';
import { refuseIfBusy } from './busy.mjs';

/** The options of a benchmark, each of which has `--busy`; ends the process where the machine is busy. */
export async function begin(usage, { flags = [], ...known } = {}, check = undefined) {
  const all = { ...known, flags: [...flags, 'busy'] };
  const values = readArguments(`npm run bench -- ${usage}\n  --busy   measures on a busy machine, too`, all, check);
  await refuseIfBusy(values.busy);
  return values;
}
