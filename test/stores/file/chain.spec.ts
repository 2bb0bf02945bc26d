import { execFileSync } from 'node:child_process';
import fs, { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir, uptime } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { Locks, LockTimeoutError, StoreError, type AcquireOptions } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { FileChain } from '../../../lib/stores/file/file.chain.js';
import { FileTable } from '../../../lib/stores/file/file.table.js';
import { BOOT, clock } from '../../../lib/stores/file/file.host.js';
import { wholeChange } from '../../support/change.js';
import { eventually } from '../../support/eventually.js';
import { type Change, type Found, RecordSweep, TOUCH, VOID } from '../../../lib/stores/records/record.table.js';
import { forkChild } from '../../support/child.js';
import { recordTableContract } from 'nestjs-distributed-lock/testing/store';
import type { HolderMessage } from './holder.child.js';

const KEY = 'key';
const HOUR = 3_600_000;

let directory: string;
let table: FileTable;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'locks-'));
  table = new FileTable(directory, 2_000);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const exchange = (by: FileTable, change: Partial<Change>): Promise<Found> =>
  by.exchange([wholeChange({ key: KEY, endsAt: clock() + 60_000, ...change })])[0]!;
const read = (by: FileTable): Promise<Found> => exchange(by, { expected: undefined });
const keysOf = async (by: FileTable): Promise<string[]> => {
  const keys: string[] = [];
  for await (const some of by.keys('')) keys.push(...some);
  return keys.sort();
};
const filesIn = (folder: string): string[] => (existsSync(join(directory, folder)) ? readdirSync(join(directory, folder)) : []);
const statesOf = (): string[] => filesIn('keys').flatMap((key) => filesIn(join('keys', key)));

/** The next process that links a state stands still before it, while others do something. */
function pauseBeforeLink(meanwhile: (others: FileChain) => void): void {
  const link = fs.linkSync;
  jest.spyOn(fs, 'linkSync').mockImplementationOnce((draft, path) => {
    meanwhile(new FileChain(dirname(String(path)), join(directory, 'drafts', 'others')));
    link(draft, path);
  });
}

/** So many changes by others. */
function change(chain: FileChain, times: number): void {
  for (let i = 0; i < times; i++) {
    const tail = chain.last()!;
    if (!chain.add({ ...tail.state, id: crypto.randomUUID(), previous: tail.state.id, record: `other ${i}` }, tail))
      throw new Error('Not alone.');
  }
}

/** Marks a key as being removed. */
function sweepFirstHalf(chain: FileChain): void {
  const tail = chain.last()!;
  chain.add({ ...tail.state, id: 'tombstone', previous: tail.state.id, isLast: true }, tail);
}

describe('a process that is paused between its read and its link', () => {
  let paused: FileTable;
  let others: FileTable;
  let version: string;
  beforeEach(async () => {
    [paused, others] = [new FileTable(directory, 1000), table];
    ({ version } = await exchange(others, { record: 'first', tokens: 1, fence: 1 }));
  });
  afterEach(() => jest.restoreAllMocks());

  it.each([1, 2, 7, 8, 9, 10, 100])('changes nothing when others have made %d changes', async (times) => {
    pauseBeforeLink((chain) => change(chain, times));
    const outcome = await exchange(paused, { expected: version, record: 'paused' }).catch((error: unknown) => error);
    if (outcome instanceof StoreError) expect(outcome).toMatchObject({ transient: true });
    else expect(outcome).toMatchObject({ written: false, record: `other ${times - 1}` });
    expect(await read(others)).toMatchObject({ record: `other ${times - 1}` });
    // What it has left behind stands in nobody's way.
    const last = await exchange(others, { expected: (await read(others)).version, record: 'last' });
    expect(last.written).toBe(true);
    expect(await read(paused)).toMatchObject({ record: 'last', version: last.version });
    expect(statesOf().length).toBeLessThanOrEqual(8);
  });

  it.each([true, false])('changes nothing when the key was swept meanwhile, and taken again: %s', async (isTaken) => {
    const { version: free } = await exchange(others, { expected: version, record: null, endsAt: 0 });
    let taken: Promise<Found> | undefined;
    pauseBeforeLink((chain) => {
      sweepFirstHalf(chain);
      chain.last();
      expect(filesIn('keys')).toEqual([]);
      if (isTaken) taken = exchange(others, { record: 'taken' });
    });
    const outcome = await exchange(paused, { expected: free, record: 'paused' }).catch((error: unknown) => error);
    expect(outcome).toMatchObject(isTaken ? { name: 'StoreError', transient: true } : { written: false, version: '' });
    expect(await read(others)).toMatchObject(isTaken ? { record: 'taken', version: (await taken)!.version } : { version: '' });
    expect(statesOf()).toHaveLength(isTaken ? 1 : 0);
  });
});

it('a state whose predecessor is gone does not count: a paused process has made it while the directory was removed', async () => {
  await exchange(table, { record: 'first' });
  const [name] = filesIn('keys') as [string];
  const chain = new FileChain(join(directory, 'keys', name), join(directory, 'drafts', 'paused'));
  const tail = chain.last()!;
  change(chain, 1);
  rmSync(join(directory, 'keys', name, String(tail.number)));
  expect(await read(table)).toMatchObject({ version: '', record: null });
  expect(await exchange(table, { record: 'next' })).toMatchObject({ written: true });
});

it('a state whose predecessor a first read did not show is not removed', async () => {
  const { version } = await exchange(table, { record: 'first' });
  await exchange(table, { expected: version, record: 'second' });
  const [first] = statesOf().sort();
  const list = fs.readdirSync;
  const partial = jest.spyOn(fs, 'readdirSync').mockImplementationOnce(((path: string) => {
    return list(path).filter((name) => name !== first);
  }) as typeof list);
  expect(await read(table)).toMatchObject({ record: 'second' });
  partial.mockRestore();
});

it('a state that counts no more, and may not be removed, is a final error', async () => {
  const { version } = await exchange(table, { record: 'first' });
  await exchange(table, { expected: version, record: 'second' });
  const [first] = statesOf().sort() as [string];
  rmSync(join(directory, 'keys', filesIn('keys')[0]!, first));
  const refused = jest.spyOn(fs, 'unlinkSync').mockImplementation(() => {
    throw Object.assign(new Error('operation not permitted'), { code: 'EPERM' });
  });
  await expect(read(table)).rejects.toMatchObject({ name: 'StoreError', transient: false });
  refused.mockRestore();
  expect(await read(table)).toMatchObject({ record: null });
});

describe('a sweep', () => {
  it('removes what has been free for long, what dead processes have left, and nothing else', async () => {
    await exchange(table, { key: 'taken' });
    await exchange(table, { key: 'free', record: null, endsAt: clock() - HOUR - 1 });
    await exchange(table, { key: 'fresh', record: null, endsAt: clock() });
    await table.wakeUps.open(() => undefined);
    const [own] = filesIn('inboxes') as [string];
    const dead = own.replace(/^\d+/, '4194304');
    mkdirSync(join(directory, 'inboxes', dead));
    writeFileSync(join(directory, 'drafts', `${dead}_draft`), '');
    writeFileSync(join(directory, 'drafts', `${own}_draft`), '');
    await table.sweep();
    expect(await keysOf(table)).toEqual(['fresh', 'taken']);
    expect(filesIn('inboxes')).toEqual([own]);
    expect(filesIn('drafts')).toEqual([`${own}_draft`]);
    await table.close();
    expect(filesIn('inboxes')).toEqual([]);
  });

  it('may come with the first request of a process, as many do not live for long', async () => {
    await exchange(table, { key: 'old', record: null, endsAt: clock() - HOUR - 1 });
    const firstOf = jest.replaceProperty(RecordSweep, 'firstOf', 1);
    const next = new FileTable(directory, 2_000);
    firstOf.restore();
    await exchange(next, { key: 'new' });
    await eventually(() => expect(filesIn('keys')).toHaveLength(1));
    await next.close();
  });

  it('that died after its first half is finished by the next one', async () => {
    await exchange(table, { record: null, endsAt: 0 });
    const [name] = filesIn('keys') as [string];
    const chain = new FileChain(join(directory, 'keys', name), join(directory, 'drafts', 'dead'));
    sweepFirstHalf(chain);
    expect(await exchange(table, { record: 'next' })).toMatchObject({ written: true });
    expect(statesOf()).toHaveLength(1);
  });
});

describe('a record that another kernel has written', () => {
  const LASTS = 60_000;
  const startedAt = Date.now() - uptime() * 1000;

  /** With a lease of a minute. @param at milliseconds since 1970 */
  async function written(at: number, record: string | null = 'theirs', lasts = LASTS) {
    await exchange(table, { record: 'first', tokens: 1, fence: 70 });
    const [name] = filesIn('keys') as [string];
    const chain = new FileChain(join(directory, 'keys', name), join(directory, 'drafts', 'theirs'));
    const tail = chain.last()!;
    const state = { id: 'theirs', previous: tail.state.id, boot: 'another', record, at: 5_000_000, endsAt: record ? 5_000_000 + lasts : 0 };
    chain.add({ ...tail.state, ...state }, tail);
    utimesSync(join(directory, 'keys', name, String(tail.number + 1)), at / 1000, at / 1000);
  }
  const changes = [undefined, VOID, TOUCH, 'theirs'] as const;
  const outcomes = (): Promise<unknown[]> =>
    Promise.all(changes.map((expected) => exchange(table, { expected, record: 'ours' }).catch((error: StoreError) => error)));

  it.each(['theirs', null])('just now (%s) is refused for good, with the names of both', async (record) => {
    await written(Date.now(), record);
    for (const outcome of await outcomes()) {
      expect(outcome).toMatchObject({ name: 'StoreError', transient: false });
      expect((outcome as StoreError).message).toMatch(new RegExp(`another; .*${BOOT}\\)`));
    }
  });

  it('is free, and its fence is kept, when its time was over before the system was started', async () => {
    await written(startedAt - LASTS - 1_000);
    expect(await read(table)).toMatchObject({ version: 'theirs', record: null, fence: 70 });
    expect(await exchange(table, { record: 'new', tokens: 1, fence: 1 })).toMatchObject({ written: true, fence: 71 });
  });

  it('is free when its time was over long ago', async () => {
    await written(Date.now() - 2 * LASTS - 1_000);
    expect(await exchange(table, { expected: TOUCH })).toMatchObject({ record: null, fence: 70 });
    expect(await exchange(table, {})).toMatchObject({ written: true });
  });

  it('is taken, and cannot be changed, while its process may run: ours may be in a container that was started after it', async () => {
    await written(startedAt - 1_000, 'theirs', Date.now() - startedAt + LASTS);
    const [seen, taken, ...refused] = await outcomes();
    for (const found of [seen, taken]) expect(found).toMatchObject({ written: false, version: 'theirs', record: 'theirs' });
    for (const error of refused) expect(error).toMatchObject({ name: 'StoreError', transient: true });
  });

  it('is not swept, nor does it keep the others from it', async () => {
    await written(Date.now());
    await exchange(table, { key: 'free', record: null, endsAt: clock() - HOUR - 1 });
    await table.sweep();
    expect(filesIn('keys')).toHaveLength(1);
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

  /** Writes what a renewal after the keyTimeout leaves behind. */
  async function makeOlderThanKeyTimeout(): Promise<void> {
    const { version, record } = await read(table);
    const { holds } = JSON.parse(record!) as { holds: object[] };
    const renewed = JSON.stringify({ ...JSON.parse(record!), holds: [{ ...holds[0], keepUntil: clock() - 1 }] });
    expect(await exchange(table, { expected: version, record: renewed, endsAt: clock() + HOUR })).toMatchObject({ written: true });
  }

  it('holds its key no longer, though its lease has not ended, when it has held it for a keyTimeout', async () => {
    const child = await holder({ keyTimeout: HOUR });
    await makeOlderThanKeyTimeout();
    child.pause();
    expect(await locks.tryAcquire(KEY)).toBeNull();
    await child.kill();
    await (await locks.acquire(KEY, { waitTimeout: HOUR })).release();
  });

  it('holds it on when it has handed it over, however old its lease was', async () => {
    const child = await holder({ keyTimeout: HOUR });
    await makeOlderThanKeyTimeout();
    child.send({ within: 60_000 });
    const { ticket } = await child.waitFor('handedOver');
    await child.kill();
    expect(await locks.tryAcquire(KEY)).toBeNull();
    await (await locks.adopt(ticket)).release();
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
    await expect(exchange(table, {})).rejects.toMatchObject({ name: 'StoreError', transient, cause: refusal });
    refused.mockRestore();
  });

  it('on a full disk gets no draft that stays', async () => {
    const { version } = await exchange(table, {});
    const write = fs.writeFileSync;
    const full = jest.spyOn(fs, 'writeFileSync').mockImplementation((path) => {
      write(path, '');
      throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    });
    for (const change of [{ expected: version }, { expected: TOUCH }, { key: 'next' }])
      await expect(exchange(table, change)).rejects.toMatchObject({ transient: true });
    full.mockRestore();
    expect(filesIn('drafts')).toEqual([]);
    expect(await exchange(table, { expected: version })).toMatchObject({ written: true });
  });

  it.each(['.', 'keys', 'drafts'])('that is deleted while it is used is made again: %s', async (folder) => {
    const locks = new Locks(fileStore({ directory }), { logger: false });
    await (await locks.acquire(KEY)).release();
    rmSync(join(directory, folder), { recursive: true });
    await (await locks.acquire(KEY)).release();
    await locks.close();
  });

  it('that is relative is warned about: it is another one where another process was started', async () => {
    const given = relative(process.cwd(), directory);
    const pathOf = async (path: string) => (await fileStore({ directory: path }).doctor!.checks('')).find(({ id }) => id === 'path');
    expect(await pathOf(given)).toMatchObject({ state: 'bad', seen: `"${given}" is relative, here ${directory}` });
    expect(await pathOf(directory)).toMatchObject({ state: 'ok' });
  });
});

describe('an inbox of a process that cannot be asked for, as that of another container', () => {
  let other: string;
  beforeEach(async () => {
    await exchange(table, {});
    await table.wakeUps.open(() => undefined);
    other = table.wakeUps.inbox.replace(/_\d+_/, '_1_');
    mkdirSync(join(directory, 'inboxes', other));
  });
  afterEach(() => table.close());
  const others = (): string[] => filesIn(join('inboxes', other));
  /** So many seconds go by in the other inbox. */
  const pass = (seconds: number): void => {
    const at = Date.now() / 1000 - seconds;
    for (const name of others()) utimesSync(join(directory, 'inboxes', other, name), at, at);
  };

  it('is removed when it has not read a message of a sweep for a minute', async () => {
    await table.sweep();
    expect(others()).toHaveLength(1);
    pass(50);
    await table.sweep();
    expect(others()).toHaveLength(1);
    pass(61);
    await table.sweep();
    expect(filesIn('inboxes')).toEqual([table.wakeUps.inbox]);
  });

  it('gets no message of operators, and counts no more, when it has not read one for a minute', async () => {
    expect(await table.bus.publish('ops', 'first')).toBe(2);
    pass(50);
    expect(await table.bus.publish('ops', 'second')).toBe(2);
    pass(61);
    expect(await table.bus.publish('ops', 'third')).toBe(1);
    expect(others()).toHaveLength(2);
  });
});

it('an inbox that is removed while its process lives is opened again, and waiters are woken', async () => {
  const { wakeUps } = table;
  const [warn, woken, heard] = [jest.fn(), jest.fn(), jest.fn()];
  await wakeUps.open(warn);
  wakeUps.listen('owner', woken);
  await wakeUps.bus.listen('ops', heard);
  const inbox = join(directory, 'inboxes', wakeUps.inbox);
  rmSync(inbox, { recursive: true });
  await eventually(() => woken.mock.calls.length > 0);
  expect([wakeUps.isOpen, existsSync(inbox), warn.mock.calls]).toEqual([true, true, []]);
  expect(await wakeUps.bus.publish('ops', 'text')).toBe(1);
  await eventually(() => heard.mock.calls.length > 0);
  wakeUps.end();
});

describe('a listing', () => {
  it('has the keys that can be read, whatever else is among them', async () => {
    for (const key of ['first', 'second']) await exchange(table, { key });
    writeFileSync(join(directory, 'keys', '.DS_Store'), '');
    mkdirSync(join(directory, 'keys', '0'));
    writeFileSync(join(directory, 'keys', '0', '9000000000000000'), 'null');
    expect(await keysOf(table)).toEqual(['first', 'second']);
  });

  it('of a folder that is none is a final error', async () => {
    writeFileSync(join(directory, 'keys'), '');
    await expect(keysOf(table)).rejects.toMatchObject({ name: 'StoreError', transient: false });
  });
});

const shared = mkdtempSync(join(tmpdir(), 'locks-'));
afterAll(() => rmSync(shared, { recursive: true }));
const open = () => new FileTable(shared, 2_000);
recordTableContract('files', open, { sweep: () => open().sweep(0) });

it('what other programs put into an inbox is dropped, and closes nothing', async () => {
  const { wakeUps } = table;
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

describe('a message', () => {
  const UUID = '00000000-0000-4000-8000-000000000000';
  const LONG = 'x'.repeat(300);
  let victim: string;
  beforeEach(() => {
    mkdirSync(join(directory, 'inboxes'));
    mkdirSync(join(directory, 'drafts'));
    mkdirSync((victim = join(directory, 'victim')));
    writeFileSync(join(victim, 'file'), 'precious');
  });
  const send = (inbox: string, text: string) => exchange(table, { messages: [{ inbox, text }] });
  const untouched = () => {
    expect(readdirSync(victim)).toEqual(['file']);
    expect(readFileSync(join(victim, 'file'), 'utf8')).toBe('precious');
  };

  it.each([
    ['file', '../victim'],
    ['other', '../inboxes/../victim'],
    [LONG, '../victim'],
  ])('to an inbox that is a path is dropped (%#)', async (text, inbox) => {
    expect(await send(inbox, text)).toMatchObject({ written: true });
    untouched();
  });

  it.each(['file', 'other', LONG])('to an inbox that leads elsewhere is dropped (%#)', async (text) => {
    symlinkSync(victim, join(directory, 'inboxes', UUID));
    await send(UUID, text);
    untouched();
  });

  it('whose name leads elsewhere is dropped', async () => {
    mkdirSync(join(directory, 'inboxes', UUID));
    symlinkSync(join(victim, 'file'), join(directory, 'inboxes', UUID, 'owner'));
    symlinkSync(join(victim, 'new'), join(directory, 'inboxes', UUID, 'other'));
    await send(UUID, 'owner');
    await exchange(table, { key: 'next', messages: [{ inbox: UUID, text: 'other' }] });
    untouched();
  });
});

it('a file that is no state of a lock is refused, and no free key', async () => {
  await exchange(table, {});
  const [key] = filesIn('keys');
  const at = (name: string): string => join(directory, 'keys', key!, name);
  writeFileSync(at('9999999999999999'), 'null');
  expect(await read(table)).toMatchObject({ record: 'record' });
  for (const text of ['null', '5', '{"id":"x"}']) {
    writeFileSync(at('9000000000000000'), text);
    await expect(read(table)).rejects.toBeInstanceOf(StoreError);
  }
  await table.close();
});
