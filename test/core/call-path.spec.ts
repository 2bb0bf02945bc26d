import { readFileSync } from 'node:fs';
import { forkChild } from '../support/child.js';
import { startRedis } from '../support/redis-server.js';
import type { CallPathMessage } from './call-path.child.js';

/** The files that are in the table of the way of one call. */
function documented(): string[] {
  const page = readFileSync('lib/core/README.md', 'utf8');
  const [table = ''] = page.slice(page.indexOf('## The way of one call')).split('\n## ', 1);
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  return rows.flatMap((row) => [...row.split('|')[1]!.matchAll(/`([^`]+)`/g)].map(([, file]) => file!));
}

describe('a decorated call that takes a free key of Redis', () => {
  let files: CallPathMessage;
  beforeAll(async () => {
    const server = await startRedis();
    const child = await forkChild<CallPathMessage>('test/core/call-path.child.ts', { args: [JSON.stringify(server.connection)] });
    files = await child.waitFor('files');
    await child.exit;
    await server.stop();
  });

  it('passes the files that lib/core/README.md names, no others, and no more than 34', () => {
    expect([...files.passed].sort()).toEqual(documented().sort());
    expect(files.passed.length).toBeLessThanOrEqual(34);
  });

  it('finds no more than 77 of our files loaded by the core and the store', () => {
    expect(files.loaded.length).toBeLessThanOrEqual(77);
  });
});
