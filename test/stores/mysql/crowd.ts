import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { forkChild } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import { sharedMariadb } from '../../support/shared-server.js';
import type { CrowdMessage } from './crowd.child.js';

/** Processes of 10 callers on MariaDB that all want one key. So many times one of them is killed and replaced. */
export async function expectNoUpdateLost(processes: number, kills: number): Promise<void> {
  const { url } = await sharedMariadb();
  const folder = mkdtempSync(join(tmpdir(), 'crowd-'));
  const log = join(folder, 'log');
  writeFileSync(log, '');
  const lines = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split(' ').map(Number) as [number, number]);
  const start = async () => {
    const child = await forkChild<CrowdMessage>('test/stores/mysql/crowd.child.ts', { args: [url, log] });
    await child.waitFor('ready');
    return child;
  };
  const children = await Promise.all(Array.from({ length: processes }, start));
  for (let killed = 0; killed < kills; killed++) {
    const before = lines().length;
    await eventually(() => lines().length > before + 100);
    await children.shift()!.kill();
    children.push(await start());
  }
  for (const child of children) child.send({ type: 'end' });
  for (const child of children) expect((await child.waitFor('done')).error).toBeUndefined();
  let last = 0;
  for (const [index, [before, token]] of lines().entries()) {
    expect(before).toBe(index);
    expect(token).toBeGreaterThan(last);
    last = token;
  }
  rmSync(folder, { recursive: true });
}
