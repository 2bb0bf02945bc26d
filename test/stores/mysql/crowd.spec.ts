import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { forkChild } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import { sharedMariadb } from '../../support/shared-server.js';
import type { CrowdMessage } from './crowd.child.js';

jest.setTimeout(120_000);

it('3 processes of 10 callers on MariaDB, one of which is killed and replaced now and then, lose no update (G2, G8)', async () => {
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
    await child.waitFor('ready', { within: 60_000 });
    return child;
  };
  const children = await Promise.all([start(), start(), start()]);
  for (let kills = 0; kills < 4; kills++) {
    const before = lines().length;
    await eventually(() => lines().length > before + 100, { within: 30_000 });
    await children.shift()!.kill();
    children.push(await start());
  }
  for (const child of children) child.send({ type: 'end' });
  for (const child of children) expect((await child.waitFor('done', { within: 60_000 })).error).toBeUndefined();
  let last = 0;
  for (const [index, [before, token]] of lines().entries()) {
    expect(before).toBe(index);
    expect(token).toBeGreaterThan(last);
    last = token;
  }
  rmSync(folder, { recursive: true });
});
