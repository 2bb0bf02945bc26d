import { rmSync } from 'node:fs';
import { BREAKS } from './breaks.js';
import { run } from './run/run.js';

/** ms of load under each break */
const LENGTH = 4_000;

/** Each oracle must see the defect that is made for it, and none may see one where there is none. */
export async function prove(only: string | undefined, onlyStores: readonly string[] | undefined): Promise<boolean> {
  let isProved = true;
  for (const [name, { stores = ['redis'] }] of Object.entries(BREAKS)) {
    if (only !== undefined && only !== name) continue;
    for (const store of stores) if (onlyStores?.includes(store) ?? true) isProved = (await isSeen(name, store)) && isProved;
  }
  return isProved;
}

async function isSeen(name: string, store: string): Promise<boolean> {
  const { expects, kinds, length = LENGTH } = BREAKS[name]!;
  const { violations, folder } = await run({ seed: name, length, kinds: [...kinds], groups: [], store, workers: 3, break: name });
  const counts = new Map<string, number>();
  for (const { oracle } of violations) counts.set(oracle, (counts.get(oracle) ?? 0) + 1);
  const found = [...counts].map(([oracle, count]) => `${oracle} ×${count}`).join(', ') || 'nothing';
  console.log(`${counts.has(expects) ? 'seen    ' : 'NOT SEEN'} ${name} on ${store}: expected "${expects}", found ${found}`);
  rmSync(folder, { recursive: true });
  return counts.has(expects);
}
