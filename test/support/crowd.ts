import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { forkChild } from './child.js';
import { eventually } from './eventually.js';
import type { CrowdArgs, CrowdMessage } from './crowd.child.js';

interface Crowd extends Pick<CrowdArgs, 'store' | 'options'> {
  /** So many lines are in the log at the end, or more. */
  turns: number;
  /** How often a process is killed and replaced, each time after a hundred lines. */
  kills?: number;
  isGuarded?: boolean;
}

/**
 * Three processes of ten callers who all want one key.
 *
 * @returns how many lines of their log did not see all lines before them, or have no larger token than the one before.
 */
export async function wrongsOfCrowd({ turns, kills = 0, isGuarded = true, ...store }: Crowd): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'crowd-'));
  const log = join(folder, 'log');
  writeFileSync(log, '');
  const lines = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split(' ').map(Number) as [number, number]);
  const more = (count: number) => eventually(() => lines().length >= count);
  const args = [JSON.stringify({ ...store, log, isGuarded } satisfies CrowdArgs)];
  const start = async () => {
    const child = await forkChild<CrowdMessage>('test/support/crowd.child.ts', { args });
    await child.waitFor('ready');
    return child;
  };
  const children = await Promise.all([start(), start(), start()]);
  try {
    for (let killed = 0; killed < kills; killed++) {
      await more(lines().length + 100);
      await children.shift()!.kill();
      children.push(await start());
    }
    await more(turns);
    for (const child of children) child.send({ type: 'end' });
    for (const child of children) expect((await child.waitFor('done')).error).toBeUndefined();
    let last = 0;
    return lines().filter(([before, token], index) => {
      const isWrong = before !== index || token <= last;
      last = token;
      return isWrong;
    }).length;
  } finally {
    await Promise.all(children.map((child) => child.kill().catch(() => child.exit)));
    rmSync(folder, { recursive: true });
  }
}
