import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileTable } from '../../../lib/stores/file/file.table.js';
import { wrongsOfCrowd } from '../../support/crowd.js';
import { eventually } from '../../support/eventually.js';

describe('three processes whose callers want one key in files', () => {
  let directory: string;
  beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'locks-'))));
  afterEach(() => rmSync(directory, { recursive: true, force: true }));
  const crowd = (args: { turns: number; kills?: number; isGuarded?: boolean }) =>
    wrongsOfCrowd({ store: 'file', options: { directory, requestTimeout: 5_000 }, ...args });
  const left = (folder: string): string[] => (existsSync(join(directory, folder)) ? readdirSync(join(directory, folder)) : []);

  it('lose updates without it', async () => {
    expect(await crowd({ turns: 2_000, isGuarded: false })).toBeGreaterThan(0);
  });

  it.each([
    [10_000, 0],
    [1_000, 4],
  ])('lose none of %d with it, never overlap, and leave nothing, though %d of them are killed (G2, G7, G8)', async (turns, kills) => {
    expect(await crowd({ turns, kills })).toBe(0);
    const table = new FileTable(directory, 1000);
    expect(left('keys')).toHaveLength(1);
    // But the fence, for an hour. A killed holder's lease may not have ended.
    await eventually(async () => {
      await table.sweep(0);
      return left('keys').length === 0;
    });
    expect({ drafts: left('drafts'), inboxes: left('inboxes') }).toEqual({ drafts: [], inboxes: [] });
    await table.close();
  });
});
