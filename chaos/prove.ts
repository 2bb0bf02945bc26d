import { rmSync } from 'node:fs';
import { BREAKS } from './breaks.js';
import { run } from './run/run.js';

/** ms of load under each break */
const LENGTH = 4_000;

/** Each oracle must see the defect that is made for it, and none may see one where there is none. */
export async function prove(only: string | undefined): Promise<boolean> {
  let isProved = true;
  for (const [name, { expects, kinds, length = LENGTH }] of Object.entries(BREAKS)) {
    if (only !== undefined && only !== name) continue;
    const { violations, folder } = await run({
      seed: name,
      length,
      kinds: [...kinds],
      groups: [],
      store: 'redis',
      workers: 3,
      break: name,
    });
    const counts = new Map<string, number>();
    for (const { oracle } of violations) counts.set(oracle, (counts.get(oracle) ?? 0) + 1);
    const isSeen = counts.has(expects);
    const found = [...counts].map(([oracle, count]) => `${oracle} ×${count}`).join(', ') || 'nothing';
    console.log(`${isSeen ? 'seen    ' : 'NOT SEEN'} ${name}: expected "${expects}", found ${found}`);
    isProved &&= isSeen;
    rmSync(folder, { recursive: true });
  }
  return isProved;
}
