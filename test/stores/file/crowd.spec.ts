import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { FileTable } from '../../../lib/stores/file/file.table.js';
import { eventually } from '../../support/eventually.js';
import { guardedFolder, startGuarded, type GuardedProcess } from '../../support/guarded-process.js';

const PROCESSES = 4;
const CALLERS = 25;

let directory: string;
let log: string;
let programs: string;
beforeAll(async () => {
  // One file starts in a moment: a process that is killed is replaced at once.
  programs = mkdtempSync(join(tmpdir(), 'crowd-'));
  await build({
    entryPoints: ['test/stores/file/crowd.child.ts'],
    outfile: join(programs, 'crowd.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
  });
});
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'locks-'));
  log = join(directory, 'log');
  writeFileSync(log, '');
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));
afterAll(() => rmSync(programs, { recursive: true, force: true }));

const lines = (): number[][] =>
  readFileSync(log, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' ').map(Number));

function start(guarded: boolean): Promise<GuardedProcess> {
  const args = [join(programs, 'crowd.mjs'), join(directory, 'locks'), log, String(CALLERS), String(guarded)];
  return startGuarded({ command: process.execPath, args, folder: guardedFolder('crowd'), onMessage: () => undefined });
}

/** Runs processes until there are so many lines. @param kills how often one of them is killed and replaced meanwhile */
async function crowd({ turns, kills = 0, guarded = true }: { turns: number; kills?: number; guarded?: boolean }): Promise<void> {
  const children = await Promise.all(Array.from({ length: PROCESSES }, () => start(guarded)));
  const more = (count: number) => eventually(() => lines().length >= count);
  for (let killed = 0; killed < kills; killed++) {
    await more(lines().length + 100);
    await children.shift()!.end();
    children.push(await start(guarded));
  }
  await more(turns);
  for (const child of children) child.send({ type: 'end' });
  for (const child of children) {
    const status = await child.exited;
    if (status !== 0) throw new Error(`A process ended with ${status}:\n${child.log()}`);
    await child.end();
  }
}

/** Lines that did not see all lines before them, or whose token is not larger than the one before. */
function wrongs(): number {
  let last = 0;
  return lines().filter(([before, token], index) => {
    const isWrong = before !== index || token! <= last;
    last = token!;
    return isWrong;
  }).length;
}

const left = (folder: string): string[] => {
  const path = join(directory, 'locks', folder);
  return existsSync(path) ? readdirSync(path) : [];
};

describe(`${PROCESSES} processes of ${CALLERS} callers, who want one key in files`, () => {
  it('lose updates without it', async () => {
    await crowd({ turns: 2_000, guarded: false });
    expect(wrongs()).toBeGreaterThan(0);
  });

  it('lose none with it, never overlap, and leave nothing (G2, G7)', async () => {
    await crowd({ turns: 10_000 });
    expect(wrongs()).toBe(0);
    await nothingIsLeft();
  });

  it('nor when one of them is killed again and again (G2, G8)', async () => {
    await crowd({ turns: 2_000, kills: 8 });
    expect(wrongs()).toBe(0);
    await nothingIsLeft();
  });
});

/** But the fence, for an hour. */
async function nothingIsLeft(): Promise<void> {
  const table = new FileTable(join(directory, 'locks'), 1000);
  expect(left('keys')).toHaveLength(1);
  // A killed holder's lease may not have ended.
  await eventually(async () => {
    await table.sweep(0);
    return left('keys').length === 0;
  });
  expect({ drafts: left('drafts'), inboxes: left('inboxes') }).toEqual({ drafts: [], inboxes: [] });
  await table.close();
}
