import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import type { Messages, Note } from '../../lib/dashboard/dashboard.protocol.js';
import { Hub } from '../../lib/dashboard/hub.js';
import { eventually, staysTrue } from '../support/eventually.js';

let locks: Locks;
const pages: PassThrough[] = [];
beforeEach(() => void (locks = new Locks(memoryStore(), { logger: false, defaults: { keyTimeout: 60_000 } })));
afterEach(async () => {
  jest.restoreAllMocks();
  pages.splice(0).forEach((page) => page.destroy());
  await locks.close();
});

const hubOf = (nameOf = (key: string) => key): Hub => new Hub(new Map([['default', locks]]), nameOf);

/** A page that reads nothing until the test does. */
function open(hub: Hub, highWaterMark?: number): PassThrough {
  const page = new PassThrough({ highWaterMark });
  pages.push(page);
  hub.open(page as unknown as ServerResponse, { me: { by: null, mayRelease: false } });
  return page;
}

it('a page that reads slowly gets nothing meanwhile, and all that has changed when it reads again', async () => {
  const hub = hubOf();
  const acquire = (count: number) => Promise.all(Array.from({ length: count }, (_, i) => locks.acquire(`${count}-${i}`)));
  await acquire(50);
  const page = open(hub, 1000);
  await eventually(() => page.writableNeedDrain);
  const before = page.writableLength;
  await acquire(60);
  await staysTrue(() => expect(page.writableLength).toBe(before), 2500);
  let text = '';
  page.setEncoding('utf8').on('data', (part: string) => (text += part));
  await eventually(() => {
    expect(new Set(text.match(/"key":"60-\d+"/g)).size).toBe(60);
  });
  hub.close();
});

it('follows the stores outside of the request that opened the first page', async () => {
  const request = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const hub = hubOf((key) => {
    seen.push(request.getStore());
    return key;
  });
  request.run('of the first page', () => open(hub));
  await locks.acquire('order:42');
  await eventually(() => seen.length > 0);
  expect(new Set(seen)).toEqual(new Set([undefined]));
  hub.close();
});

it('asks the doctor of a store once a minute at most, also where the only page is loaded again; and again after a failure', async () => {
  let time = performance.now();
  jest.spyOn(performance, 'now').mockImplementation(() => time);
  const doctor = jest.spyOn(locks, 'doctor');
  const hub = hubOf();
  open(hub);
  open(hub).destroy();
  const [first] = pages;
  first?.destroy();
  await eventually(() => first?.closed === true);
  open(hub);
  expect(doctor).toHaveBeenCalledTimes(1);

  time += 60_000;
  doctor.mockRejectedValueOnce(new Error('It does not answer.'));
  open(hub);
  expect(doctor).toHaveBeenCalledTimes(2);
  await eventually(() => {
    open(hub);
    expect(doctor).toHaveBeenCalledTimes(3);
  });
  hub.close();
});

/** What a page was sent. */
function messagesOf(page: PassThrough): { event: string; data: never }[] {
  const text = String(page.read() ?? '');
  return [...text.matchAll(/event: (.*)\ndata: (.*)\n/g)].map(([, event, data]) => ({ event: event!, data: JSON.parse(data!) as never }));
}

it('rows are made once for all pages, and come some at a time, between which other work goes on', async () => {
  for (let i = 0; i < 1_200; i++) await locks.acquire(`key-${i}`);
  const hub = hubOf();
  const first = open(hub, 1e9);
  await eventually(() =>
    messagesOf(first).some(({ event, data }) => event === 'stats' && (data as Messages['stats']).numbers.held === 1_200),
  );
  const made = jest.spyOn(JSON, 'stringify');
  let iterations = 0;
  let isOver = false;
  const count = (): void => void (isOver || setImmediate(() => (iterations++, count())));
  count();
  const sentIn: number[] = [];
  const others = Array.from({ length: 8 }, () => {
    const page = open(hub, 1e9);
    const write = page.write.bind(page) as (text: string) => boolean;
    page.write = (text: string) => {
      if (text.startsWith('event: delta')) sentIn.push(iterations);
      return write(text);
    };
    return page;
  });
  const puts = others.map(() => [] as number[]);
  await eventually(() => {
    others.forEach((page, i) =>
      messagesOf(page).forEach(({ event, data }) => event === 'delta' && puts[i]!.push((data as Messages['delta']).put.length)),
    );
    expect(puts).toEqual(others.map(() => [500, 500, 200]));
  });
  isOver = true;
  // The first page may have got its first part at once.
  expect(sentIn.length).toBeGreaterThanOrEqual(8 * 3 - 1);
  expect(new Set(sentIn).size).toBe(sentIn.length);
  expect(made.mock.calls.filter(([value]) => Object.hasOwn(Object(value) as object, 'waitingSince'))).toEqual([]);
  hub.close();
});

it('no number is given before the stores are listed, and it says how far the listing is', async () => {
  for (let i = 0; i < 3; i++) await locks.acquire(`key-${i}`);
  let go!: () => void;
  const opened = new Promise<void>((resolve) => (go = resolve));
  const list = locks.list.bind(locks);
  jest.spyOn(locks, 'list').mockImplementation(async function* (options) {
    for await (const report of list(options)) {
      yield report;
      await opened;
    }
  });
  const hub = hubOf();
  const page = open(hub, 1e9);
  const stats: Messages['stats'][] = [];
  const read = () => messagesOf(page).forEach(({ event, data }) => event === 'stats' && stats.push(data));
  const last = () => (read(), stats.at(-1));
  const counts = { held: null, waiting: null };
  await eventually(() => expect(last()).toMatchObject({ numbers: counts, listings: { default: { state: 'under way', keys: 1 } } }));
  go();
  await eventually(() => expect(last()).toMatchObject({ numbers: { held: 3 }, listings: { default: { state: 'whole', keys: 3 } } }));
  expect(stats.filter(({ numbers }) => numbers.held !== null && numbers.held !== 3)).toEqual([]);
  hub.close();
});

it('keys that a listing does not have, as there are too many, are asked for', async () => {
  await locks.close();
  locks = new Locks({ ...memoryStore(), bus: undefined }, { logger: false });
  const one = await locks.inspect('key');
  const party = {
    owner: 'shop@a:1:u1',
    app: 'shop',
    host: 'a',
    pid: 1,
    phase: 'held' as const,
    remaining: 1,
    since: null,
    permits: Infinity,
  };
  const nameOf = (index: number): string => (index === 0 ? 'ended' : `key-${index}`);
  let first = 0;
  jest.spyOn(locks, 'list').mockImplementation(async function* () {
    for (let index = first; index <= 10_000 + first; index++) yield { ...one, key: nameOf(index), holders: [party], holderCount: 1 };
    first = 1;
    await Promise.resolve();
  });
  const hub = hubOf();
  open(hub, 1e9);
  await eventually(() => hub.liveKey('default', 'key-1') !== undefined);
  expect(hub.liveKey('default', 'ended')).toBeDefined();
  await eventually(() => expect(hub.liveKey('default', 'ended')).toBeUndefined());
  expect(hub.liveKey('default', 'key-1')).toBeDefined();
  hub.close();
});

it('equal time-outs are one note, and do not push out what matters', async () => {
  const hub = hubOf();
  const page = open(hub, 1e9);
  const event = { app: 'shop', host: 'a', pid: 1, at: new Date(), label: 'Cart.checkout' };
  hub.happened('default', { ...event, event: 'forced', key: 'import', by: 'anna', reason: 'it hangs' });
  for (let i = 0; i < 700; i++) hub.happened('default', { ...event, event: 'timeout', key: 'hot' });
  for (let i = 0; i < 700; i++) hub.happened('default', { ...event, event: 'timeout', key: `cold-${i}` });
  const notes: Note[] = [];
  await eventually(() => {
    messagesOf(page).forEach((message) => message.event === 'notes' && notes.push(...(message.data as Note[])));
    expect(notes).toContainEqual(expect.objectContaining({ event: 'forced', key: 'import', by: 'anna' }));
    expect(notes.filter(({ key }) => key === 'hot')).toMatchObject([{ count: 700, label: 'Cart.checkout' }]);
  });
  expect(hub.notesOf('default', 'import')).toMatchObject([{ event: 'forced', reason: 'it hangs' }]);
  hub.close();
});

it('what happened before any page was open is shown when one is, once, and says nothing of now', async () => {
  const store = memoryStore();
  await locks.close();
  const other = new Locks(store, { logger: false });
  locks = new Locks(store, { logger: false });
  const lease = await other.acquire('import', { label: 'Import.run' });
  await locks.forceRelease({ key: 'import' }, { reason: 'it hangs', by: 'anna', grace: 0 });
  expect(lease.signal.aborted).toBe(true);
  await other.acquire('hot');
  for (let i = 0; i < 3; i++) await expect(locks.acquire('hot', { waitTimeout: 1, label: 'Cart.checkout' })).rejects.toThrow();
  const hub = hubOf();
  const page = open(hub, 1e9);
  const notes: Note[] = [];
  const stats: Messages['stats'][] = [];
  await eventually(() => {
    for (const { event, data } of messagesOf(page)) {
      if (event === 'notes') notes.push(...(data as Note[]));
      if (event === 'stats') stats.push(data);
    }
    expect(notes.length).toBeGreaterThanOrEqual(2);
    expect(stats.length).toBeGreaterThanOrEqual(4);
  });
  for (const note of [
    { event: 'forced', key: 'import', label: 'Import.run', by: 'anna', reason: 'it hangs', count: 1 },
    { event: 'lost', key: 'import', label: 'Import.run', count: 1 },
    { event: 'timeout', key: 'hot', label: 'Cart.checkout', count: 3 },
  ])
    expect(notes).toContainEqual(expect.objectContaining(note));
  expect(stats.at(-1)).toMatchObject({ numbers: { timeouts: 3, lost: 1, held: 1, waiting: 0 } });
  const at = new Date();
  hub.happened('default', { app: 'shop', host: 'a', pid: 1, event: 'lost', key: 'gone', at, firstAt: at });
  expect(hub.liveKey('default', 'gone')).toBeUndefined();
  hub.close();
  await other.close();
});

it('a page that is loaded again within a minute finds the table as it is, and after a minute nothing is followed', async () => {
  let late = 0;
  const real = performance.now.bind(performance);
  jest.spyOn(performance, 'now').mockImplementation(() => real() + late);
  const list = jest.spyOn(locks, 'list');
  const hub = hubOf();
  open(hub).destroy();
  await eventually(() => expect(list).toHaveBeenCalledTimes(1));
  await locks.acquire('order:42');
  await eventually(() => hub.liveKey('default', 'order:42') !== undefined);

  const again = open(hub, 1e9);
  await eventually(() => messagesOf(again).some(({ data }) => JSON.stringify(data).includes('order:42')));
  expect(list).toHaveBeenCalledTimes(1);
  await once(again.destroy(), 'close');
  late = 61_000;
  await eventually(() => hub.followerOf('default') === undefined);
  hub.close();
});
