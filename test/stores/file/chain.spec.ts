import { execFileSync } from 'node:child_process';
import fs, { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Locks, LockTimeoutError, StoreError, type AcquireOptions } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { FileChain } from '../../../lib/stores/file/file.chain.js';
import { FileTable } from '../../../lib/stores/file/file.table.js';
import { clock } from '../../../lib/stores/file/file.host.js';
import { eventually } from '../../support/eventually.js';
import { adviceOn } from '../../../lib/stores/file/file.report.js';
import { type Change, type Found, VOID } from '../../../lib/stores/records/record.table.js';
import { forkChild } from '../../support/child.js';
import { recordTableContract } from '../../contract/record-table.contract.js';
import type { HolderMessage } from './holder.child.js';

const KEY = 'key';
const HOUR = 3_600_000;

let directory: string;
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'locks-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const changeOf = (change: Partial<Change>): Change => ({
  ...{
    key: KEY,
    expected: VOID,
    record: 'record',
    endsAt: clock() + 60_000,
    notBefore: 0,
    tokens: 0,
    fence: 0,
    messages: [],
    isLazy: false,
  },
  ...change,
});
const exchange = (table: FileTable, change: Partial<Change>): Promise<Found> => table.exchange([changeOf(change)])[0]!;
const look = (table: FileTable): Promise<Found> => exchange(table, { expected: undefined });
const filesIn = (folder: string): string[] => (existsSync(join(directory, folder)) ? readdirSync(join(directory, folder)) : []);
const statesOf = (): string[] => filesIn('keys').flatMap((key) => filesIn(join('keys', key)));

/** A process that stands still between its look and its `link`, once, while the others do something. */
class PausedTable extends FileTable {
  meanwhile: ((other: FileChain) => void) | undefined;

  protected override chain(name: string): FileChain {
    const args = [join(directory, 'keys', name), join(directory, 'drafts', 'paused')] as const;
    return new PausedChain(...args, () => {
      const { meanwhile } = this;
      this.meanwhile = undefined;
      meanwhile?.(new FileChain(...args));
    });
  }
}

class PausedChain extends FileChain {
  constructor(
    folder: string,
    drafts: string,
    private readonly pause: () => void,
  ) {
    super(folder, drafts);
  }

  protected override publish(draft: string, path: string): void {
    this.pause();
    super.publish(draft, path);
  }
}

/** So many changes by others. */
function change(chain: FileChain, times: number): void {
  for (let i = 0; i < times; i++) {
    const tail = chain.last()!;
    if (!chain.add({ ...tail.state, id: crypto.randomUUID(), previous: tail.state.id, record: `other ${i}` }, tail))
      throw new Error('Not alone.');
  }
}

describe('a process that is paused between its look and its link', () => {
  let paused: PausedTable;
  let others: FileTable;
  let version: string;
  beforeEach(async () => {
    paused = new PausedTable(directory, 1000);
    others = new FileTable(directory, 2_000);
    ({ version } = await exchange(others, { record: 'first', tokens: 1, fence: 1 }));
  });

  it.each([1, 2, 31, 32, 33, 34, 100])('changes nothing when others have made %d changes', async (times) => {
    paused.meanwhile = (chain) => change(chain, times);
    const outcome = await exchange(paused, { expected: version, record: 'paused' }).catch((error: unknown) => error);
    if (outcome instanceof StoreError) expect(outcome).toMatchObject({ transient: true });
    else expect(outcome).toMatchObject({ written: false, record: `other ${times - 1}` });
    expect(await look(others)).toMatchObject({ record: `other ${times - 1}` });
    // What it has left behind stands in nobody's way.
    const last = await exchange(others, { expected: (await look(others)).version, record: 'last' });
    expect(last.written).toBe(true);
    expect(await look(paused)).toMatchObject({ record: 'last', version: last.version });
    expect(statesOf().length).toBeLessThanOrEqual(32);
  });

  it('changes nothing when the key was swept meanwhile, and taken anew', async () => {
    const { version: free } = await exchange(others, { expected: version, record: null, endsAt: 0 });
    let taken: Promise<Found> | undefined;
    paused.meanwhile = (chain) => {
      const tail = chain.last()!;
      chain.add({ ...tail.state, id: 'tombstone', previous: tail.state.id, isLast: true }, tail);
      chain.last();
      expect(filesIn('keys')).toEqual([]);
      taken = exchange(others, { record: 'taken' });
    };
    const outcome = await exchange(paused, { expected: free, record: 'paused' }).catch((error: unknown) => error);
    expect(outcome).toMatchObject({ name: 'StoreError', transient: true });
    expect(await taken).toMatchObject({ written: true });
    expect(await look(others)).toMatchObject({ record: 'taken', version: (await taken)!.version });
    expect(statesOf()).toHaveLength(1);
  });

  it('changes nothing when the key was swept meanwhile', async () => {
    const { version: free } = await exchange(others, { expected: version, record: null, endsAt: 0 });
    paused.meanwhile = (chain) => {
      const tail = chain.last()!;
      chain.add({ ...tail.state, id: 'tombstone', previous: tail.state.id, isLast: true }, tail);
      chain.last();
    };
    expect(await exchange(paused, { expected: free, record: 'paused' })).toMatchObject({ written: false, version: '' });
    expect(await look(others)).toMatchObject({ version: '' });
  });
});

it('a state whose predecessor is gone does not count: a paused process has made it while the directory was removed', async () => {
  const table = new FileTable(directory, 2_000);
  await exchange(table, { record: 'first' });
  const [name] = filesIn('keys') as [string];
  const chain = new FileChain(join(directory, 'keys', name), join(directory, 'drafts', 'paused'));
  const tail = chain.last()!;
  change(chain, 1);
  rmSync(join(directory, 'keys', name, String(tail.number)));
  expect(await look(table)).toMatchObject({ version: '', record: null });
  expect(await exchange(table, { record: 'next' })).toMatchObject({ written: true });
});

describe('a sweep', () => {
  it('removes what has been free for long, what dead processes have left, and nothing else', async () => {
    const table = new FileTable(directory, 2_000);
    await exchange(table, { key: 'taken' });
    const { version } = await exchange(table, { key: 'free' });
    await exchange(table, { key: 'free', expected: version, record: null, endsAt: clock() - HOUR - 1 });
    const { version: fresh } = await exchange(table, { key: 'fresh' });
    await exchange(table, { key: 'fresh', expected: fresh, record: null, endsAt: clock() });
    await table.wakeUps.open(() => undefined);
    const [own] = filesIn('inboxes') as [string];
    const dead = own.replace(/^\d+/, '4194304');
    mkdirSync(join(directory, 'inboxes', dead));
    writeFileSync(join(directory, 'drafts', `${dead}_draft`), '');
    writeFileSync(join(directory, 'drafts', `${own}_draft`), '');
    await table.sweep();
    const keys: string[] = [];
    for await (const some of table.keys('')) keys.push(...some);
    expect(keys.sort()).toEqual(['fresh', 'taken']);
    expect(filesIn('inboxes')).toEqual([own]);
    expect(filesIn('drafts')).toEqual([`${own}_draft`]);
    await table.close();
    expect(filesIn('inboxes')).toEqual([]);
  });

  it('that died after its first half is finished by the next one', async () => {
    const table = new FileTable(directory, 2_000);
    await exchange(table, { record: null, endsAt: 0 });
    const [name] = filesIn('keys') as [string];
    const chain = new FileChain(join(directory, 'keys', name), join(directory, 'drafts', 'dead'));
    const tail = chain.last()!;
    chain.add({ ...tail.state, id: 'tombstone', previous: tail.state.id, isLast: true }, tail);
    expect(await exchange(table, { record: 'next' })).toMatchObject({ written: true });
    expect(statesOf()).toHaveLength(1);
  });
});

describe('a record', () => {
  it('that was written before the host was started has ended, and its fence is kept', async () => {
    const table = new FileTable(directory, 2_000);
    await exchange(table, { record: 'old', tokens: 1, fence: 70 });
    const [name] = filesIn('keys') as [string];
    const chain = new FileChain(join(directory, 'keys', name), join(directory, 'drafts', 'old'));
    const tail = chain.last()!;
    chain.add({ ...tail.state, id: 'old', previous: tail.state.id, boot: 'another' }, tail);
    expect(await look(table)).toMatchObject({ version: 'old', record: null, fence: 70 });
    expect(await exchange(table, { record: 'new', tokens: 1, fence: 1 })).toMatchObject({ written: true, fence: 71 });
  });
});

describe('a process that was killed', () => {
  let locks: Locks;
  beforeEach(() => (locks = new Locks(fileStore({ directory }), { logger: false })));
  afterEach(() => locks.close());

  async function holder(options: AcquireOptions) {
    const child = await forkChild<HolderMessage>('test/stores/file/holder.child.ts', { args: [directory, KEY, JSON.stringify(options)] });
    await child.waitFor('held');
    return child;
  }

  it('holds its key no longer, though its lease has not ended, when it has held it for a keyTimeout', async () => {
    const child = await holder({ keyTimeout: HOUR });
    // What a renewal after the keyTimeout leaves behind.
    const table = new FileTable(directory, 2_000);
    const { version, record } = await look(table);
    const { holds } = JSON.parse(record!) as { holds: object[] };
    const renewed = JSON.stringify({ ...JSON.parse(record!), holds: [{ ...holds[0], keepUntil: clock() - 1 }] });
    expect(await exchange(table, { expected: version, record: renewed, endsAt: clock() + HOUR })).toMatchObject({ written: true });
    child.pause();
    expect(await locks.tryAcquire(KEY)).toBeNull();
    await child.kill();
    await (await locks.acquire(KEY, { waitTimeout: HOUR })).release();
  });

  it('keeps it for its minHold', async () => {
    const child = await holder({ keyTimeout: 5_000, minHold: HOUR });
    await child.kill();
    await expect(locks.acquire(KEY, { waitTimeout: 5_500 })).rejects.toThrow(LockTimeoutError);
  });
});

describe('a directory', () => {
  it.each([
    ['that is a file', () => writeFileSync((directory = `${directory}/file`), '')],
    ['beneath a file', () => (writeFileSync(`${directory}/file`, ''), (directory = `${directory}/file/below`))],
    ['that leads to itself', () => (symlinkSync(`${directory}/loop`, `${directory}/loop`), (directory = `${directory}/loop`))],
  ] as [string, () => unknown][])('%s is a final error', async (_name, make) => {
    const whole = directory;
    make();
    const locks = new Locks(fileStore({ directory }), { logger: false });
    directory = whole;
    await expect(locks.acquire(KEY, { waitTimeout: 60_000 })).rejects.toMatchObject({ name: 'StoreError', transient: false });
    await locks.close();
  });

  it.each([
    ['EACCES', false],
    ['EPERM', false],
    ['EROFS', false],
    ['ENOSPC', true],
  ])('in which nothing can be made (%s) is an error, and a transient one: %s', async (code, transient) => {
    const refusal = Object.assign(new Error(code), { code });
    const refused = jest.spyOn(fs, 'mkdirSync').mockImplementation(() => {
      throw refusal;
    });
    await expect(exchange(new FileTable(directory, 2_000), {})).rejects.toMatchObject({ name: 'StoreError', transient, cause: refusal });
    refused.mockRestore();
  });

  it('that is deleted while it is used is made anew', async () => {
    const locks = new Locks(fileStore({ directory }), { logger: false });
    await (await locks.acquire(KEY)).release();
    rmSync(directory, { recursive: true });
    await (await locks.acquire(KEY)).release();
    await locks.close();
  });

  it('on another host is warned about', async () => {
    expect(adviceOn('NFS', '/mnt/locks')).toContain('/mnt/locks is on NFS');
    expect(await fileStore({ directory }).describe!()).toMatchObject({ server: 'The file store', wakesWaiters: true });
  });
});

const shared = mkdtempSync(join(tmpdir(), 'locks-'));
afterAll(() => rmSync(shared, { recursive: true }));
const open = () => new FileTable(shared, 2_000);
recordTableContract('files', open, { sweep: () => open().sweep(0) });

it('what strangers put into an inbox is dropped, and closes nothing', async () => {
  const { wakeUps } = new FileTable(directory, 2_000);
  const [warn, debug, woken] = [jest.fn(), jest.fn(), jest.fn()];
  await wakeUps.open(warn, debug);
  wakeUps.listen('owner', woken);
  const inbox = join(directory, 'inboxes', wakeUps.inbox);
  const at = (name: string): string => join(inbox, name);
  writeFileSync(at('%zz'), '');
  mkdirSync(join(at('a'), 'b'), { recursive: true });
  mkdirSync(at('+folder'));
  const large = join(directory, 'large');
  writeFileSync(large, '');
  fs.truncateSync(large, 2 ** 33);
  fs.renameSync(large, at('+large'));
  execFileSync('mkfifo', [at('+pipe')]);
  symlinkSync('/dev/zero', at('+endless'));
  await eventually(() => expect(readdirSync(inbox)).toEqual([]));
  expect(debug.mock.calls.length).toBeGreaterThanOrEqual(5);
  writeFileSync(join(inbox, 'owner'), '');
  await eventually(() => woken.mock.calls.length > 0);
  expect([wakeUps.isOpen, warn.mock.calls]).toEqual([true, []]);
  wakeUps.end();
});

it('a file that is no state of a lock is refused, and no free key', async () => {
  const table = new FileTable(directory, 2_000);
  await exchange(table, {});
  const [key] = filesIn('keys');
  const at = (name: string): string => join(directory, 'keys', key!, name);
  writeFileSync(at('9999999999999999'), 'null');
  expect(await look(table)).toMatchObject({ record: 'record' });
  for (const text of ['null', '5', '{"id":"x"}']) {
    writeFileSync(at('9000000000000000'), text);
    await expect(look(table)).rejects.toBeInstanceOf(StoreError);
  }
  await table.close();
});
