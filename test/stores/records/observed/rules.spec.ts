import { afterTurns, mayTake, passTime } from '../../../support/virtual-time.js';
import { StoreError } from '../../../../lib/core/model/errors.js';
import type { AcquireReply } from '../../../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../../../lib/core/store/lock-store.js';
import type { CasChange } from '../../../../lib/stores/records/observed/cas.table.js';
import { observedTable } from '../../../../lib/stores/records/observed/observed.table.js';
import { recordStore } from '../../../../lib/stores/records/record.store.js';
import type { KeyRecord, LatchRecord, LeaseRecord } from '../../../../lib/stores/records/record.work.js';
import { CasMapData, CasMapTable, type CasMapTableOptions } from '../../../support/cas-map-table.js';

afterTurns(60);
mayTake(20_000);

const TTL = 1000;
const HOUR = 3_600_000;
const GRANTED = { granted: true };
const TAKEN = { granted: false };

let data: CasMapData;
let opened: LockStore[];
let places = 0;
beforeEach(() => {
  data = new CasMapData();
  opened = [];
});
afterEach(() => Promise.all(opened.map((store) => store.close())));

/** Another process. Without a count, unless it is asked for, so that it knows only what it has looked at. */
function newProcess(options: CasMapTableOptions = {}): LockStore {
  const table = new CasMapTable(data, { place: `rules ${++places}`, isCounted: false, isWoken: false, ...options });
  opened.push(recordStore(observedTable(table)));
  return opened.at(-1)!;
}
const counted = (options: CasMapTableOptions = {}): LockStore => newProcess({ isCounted: true, ...options });

const acquire = (store: LockStore, owner: string, { key = 'key', ttl = TTL, queue = false } = {}): Promise<AcquireReply> =>
  store.mutex.acquire({ key, owner, ttl, tokens: 1, queue });
const renew = (store: LockStore, owner: string, ttl = TTL) => store.mutex.renew([{ key: 'key', owner, ttl }])[0]!;
const release = (store: LockStore, owner: string, keepFor = 0) => store.mutex.release({ key: 'key', owner, keepFor });
const leave = (store: LockStore, owner: string) => store.mutex.leave({ key: 'key', owner });
const remaining = async (store: LockStore, key = 'key'): Promise<number> => (await store.mutex.check({ key, owner: 'nobody' })).remaining;
const inRow = <T extends KeyRecord = LeaseRecord>(key = 'key'): T => (JSON.parse(data.rows.get(key)!.text) as { record: T }).record;

/** Holds back what it is put before, until it is opened. */
function newGate() {
  let open = (): void => undefined;
  const opening = new Promise<void>((resolve) => (open = resolve));
  return { open, opening };
}

/** So many writes of other keys. */
async function write(store: LockStore, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await acquire(store, 'a', { key: `other ${++keys}` });
}
let keys = 0;

/** The store becomes what it was, and its count with it. */
function copyOfStore(): () => void {
  const [rows, count] = [new Map(data.rows), data.count];
  return () => {
    data.rows.clear();
    for (const [key, row] of rows) data.rows.set(key, row);
    data.count = count;
  };
}

describe('a lease', () => {
  it('ends so long after it was seen first, for each process', async () => {
    const [holder, early, late] = [newProcess(), newProcess(), newProcess()];
    await acquire(holder, 'a');
    expect(await acquire(early, 'b')).toMatchObject(TAKEN);
    await passTime(600);
    expect(await remaining(late)).toBeGreaterThan(TTL - 50);
    expect(await remaining(early)).toBeLessThan(450);
    await passTime(410);
    expect(await acquire(late, 'c')).toMatchObject(TAKEN);
    expect(await acquire(early, 'b')).toMatchObject(GRANTED);
  });

  it.each([
    ['that counts its writes', counted],
    ['that does not count', newProcess],
  ])('is not longer or shorter because others write the row of a store %s', async (_, open) => {
    const [holder, observer, waiter] = [open(), open(), open()];
    await acquire(holder, 'a');
    await acquire(observer, 'b');
    for (let index = 0; index < 4; index++) {
      await passTime(240);
      await acquire(waiter, `c${index}`, { queue: true });
      expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
      await leave(waiter, `c${index}`);
    }
    await passTime(60);
    expect(await acquire(observer, 'b')).toMatchObject(GRANTED);
  });

  it.each([
    [TTL, TTL],
    [500, 500],
    [100, 500],
  ])('of 1,000 ms, half of which is over, is a new one when it is renewed for %d ms, of %d ms', async (ttl, left) => {
    const [holder, observer, newcomer] = [newProcess(), newProcess(), newProcess()];
    await acquire(holder, 'a');
    await acquire(observer, 'b');
    await passTime(500);
    expect(await renew(holder, 'a', ttl)).toBe('renewed');
    expect(await remaining(newcomer)).toBeGreaterThan(left - 10);
    await acquire(observer, 'b');
    await passTime(left - 10);
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
    expect(await renew(holder, 'a', ttl)).toBe('renewed');
  });

  it('is written again by a renewal in the same millisecond: others have seen it earlier than the holder', async () => {
    const holder = newProcess();
    await acquire(holder, 'a');
    const { count } = data;
    const { stamp } = inRow().holds[0]!;
    const replies = await Promise.all(holder.mutex.renew([{ key: 'key', owner: 'a', ttl: 10 }]));
    expect(replies).toEqual(['renewed']);
    expect(data.count).toBe(count + 1);
    expect(inRow().holds[0]!.stamp).not.toBe(stamp);
  });

  it('of several that are held at a time ends by itself', async () => {
    const [one, two, observer] = [newProcess(), newProcess(), newProcess()];
    const permit = (store: LockStore, owner: string) =>
      store.semaphore!.acquire({ key: 'key', owner, ttl: TTL, tokens: 1, queue: false, share: { count: 1, permits: 2, rank: 0 } });
    await permit(one, 'a');
    expect(await permit(observer, 'c')).toMatchObject(GRANTED);
    await observer.semaphore!.release({ key: 'key', owner: 'c', keepFor: 0 });
    await passTime(600);
    await permit(two, 'b');
    expect(await permit(observer, 'c')).toMatchObject(TAKEN);
    await passTime(410);
    expect(await permit(observer, 'c')).toMatchObject(GRANTED);
    expect(inRow().holds.map(({ owner }) => owner)).toEqual(['b', 'c']);
  });
});

it('a queue is kept as long as somebody asks', async () => {
  const [holder, first, second] = [newProcess(), newProcess(), newProcess()];
  await acquire(holder, 'a', { ttl: HOUR });
  await acquire(first, 'b', { queue: true });
  for (let seconds = 0; seconds < 120; seconds += 20) {
    expect(await acquire(second, 'c', { queue: true })).toMatchObject({ ahead: 1 });
    expect(await acquire(first, 'b', { queue: true })).toMatchObject({ ahead: 0 });
    await passTime(20_000);
  }
  mayTake(200_000);
  await passTime(60_000);
  expect(await acquire(second, 'c', { queue: true })).toMatchObject({ ahead: 0 });
});

describe('an offer', () => {
  it('ends as a lease does', async () => {
    const [holder, waiter, observer] = [newProcess(), newProcess(), newProcess()];
    await acquire(holder, 'a');
    await acquire(waiter, 'b', { queue: true, ttl: 300 });
    await release(holder, 'a');
    await acquire(observer, 'c');
    await passTime(290);
    expect(await acquire(observer, 'c')).toMatchObject(TAKEN);
    await passTime(11);
    expect(await acquire(observer, 'c')).toMatchObject(GRANTED);
  });

  it('is a new lease when it is confirmed, also by who sees it only then', async () => {
    const [holder, waiter, observer] = [newProcess(), newProcess(), newProcess()];
    await acquire(holder, 'a');
    await acquire(waiter, 'b', { queue: true });
    await release(holder, 'a');
    await acquire(observer, 'c');
    await passTime(900);
    expect(await acquire(waiter, 'b', { queue: true })).toMatchObject(GRANTED);
    await passTime(200);
    expect(await acquire(observer, 'c')).toMatchObject(TAKEN);
    await passTime(900);
    expect(await acquire(observer, 'c')).toMatchObject(TAKEN);
  });
});

it('a minHold lasts as long as it was asked for', async () => {
  const [holder, observer, newcomer] = [newProcess(), newProcess(), newProcess()];
  await acquire(holder, 'a');
  await acquire(observer, 'b');
  await passTime(900);
  expect(await release(holder, 'a', 500)).toBe('released');
  await acquire(observer, 'b');
  await passTime(480);
  expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
  expect(await acquire(newcomer, 'c')).toMatchObject(TAKEN);
  await passTime(21);
  expect(await acquire(observer, 'b')).toMatchObject(GRANTED);
});

describe('a latch', () => {
  const latchOf = (store: LockStore) => store.countDownLatch!;
  const change = (line: string, number = 1, ttl = TTL) => ({ key: 'latch', ttl, operation: { line, number } });

  it('knows each operation for as long as it may be repeated, from the first sight of it', async () => {
    const [one, two, three] = [newProcess(), newProcess(), newProcess()];
    await latchOf(one).trySetCount({ ...change('one', 1, HOUR), count: 10, knownFor: 10_000 });
    expect(await latchOf(two).countDown({ ...change('two', 1, HOUR), knownFor: 1000 })).toBe(9);
    await latchOf(three).countDown(change('three', 1, HOUR));
    await passTime(900);
    // It forgets what is over, and writes the rest anew.
    await latchOf(three).countDown(change('three', 2, HOUR));
    expect(await latchOf(two).countDown({ ...change('two', 1, HOUR), knownFor: 1000 })).toBe(9);
    await passTime(120);
    await latchOf(three).countDown(change('three', 3, HOUR));
    expect(Object.keys(inRow<LatchRecord>('latch').lines)).toEqual(['one', 'three']);
    expect(inRow<LatchRecord>('latch').count).toBe(6);
  });

  it('ends as a lease does, and an operation prolongs it for all', async () => {
    const [one, two, observer] = [newProcess(), newProcess(), newProcess()];
    const look = () => latchOf(observer).look({ key: 'latch', owner: 'b', queue: false });
    await latchOf(one).trySetCount({ ...change('one'), count: 3 });
    expect(await look()).toMatchObject({ count: 3 });
    await passTime(900);
    await latchOf(two).countDown(change('two'));
    expect(await look()).toMatchObject({ count: 2 });
    await passTime(900);
    expect(await look()).toMatchObject({ count: 2 });
    await passTime(110);
    expect(await look()).toBeUndefined();
  });
});

describe('a request', () => {
  it('that arrives late changes nothing', async () => {
    const gate = newGate();
    let isFirst = true;
    const before = ({ expected }: CasChange): Promise<void> | void => {
      if (!isFirst || expected === 'look') return;
      isFirst = false;
      return gate.opening;
    };
    const [late, other] = [newProcess({ before }), newProcess()];
    await expect(acquire(late, 'a')).rejects.toThrow(StoreError);
    expect(await acquire(other, 'b', { ttl: 100 })).toMatchObject(GRANTED);
    await release(other, 'b');
    const row = data.rows.get('key');
    gate.open();
    await passTime(100);
    expect(data.rows.get('key')).toBe(row);
  });

  it('relies on what it has seen only if that is still there: the process may have been paused in between', async () => {
    const [holder, observer] = [newProcess(), newProcess()];
    await acquire(holder, 'a');
    await acquire(observer, 'b');
    await passTime(990);
    await renew(holder, 'a');
    await passTime(11);
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
    expect(await renew(holder, 'a')).toBe('renewed');
  });

  it('counts what it has seen from the reply, not from when it was sent', async () => {
    const gate = newGate();
    const [holder, observer] = [newProcess(), newProcess({ before: () => gate.opening })];
    const first = remaining(observer);
    await passTime(500);
    await acquire(holder, 'a', { ttl: 600 });
    gate.open();
    expect(await first).toBeGreaterThan(580);
    await passTime(580);
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
  });
});

describe('a process that has never looked at a key', () => {
  it('finds it taken for as long as a lease is, if the store does not count its writes', async () => {
    await acquire(newProcess(), 'dead');
    await passTime(5000);
    const process = newProcess();
    const reply = await acquire(process, 'b');
    expect(reply).toMatchObject(TAKEN);
    expect((reply as { remaining: number }).remaining).toBeGreaterThan(TTL - 50);
    await passTime(TTL + 1);
    expect(await acquire(process, 'b')).toMatchObject(GRANTED);
  });

  it.each([0, 500])('knows by the count how old a lease is, or a minHold of %d ms', async (keepFor) => {
    const [process, holder] = [counted(), counted()];
    await acquire(holder, 'dead', { ttl: 3000 });
    if (keepFor > 0) await release(holder, 'dead', keepFor);
    await passTime(keepFor > 0 ? keepFor + 1100 : 4100);
    expect(await acquire(process, 'b')).toMatchObject(GRANTED);
  });

  it('knows it also though others have written the row since', async () => {
    const [process, holder, waiter] = [counted(), counted(), counted()];
    await acquire(holder, 'dead', { ttl: 3000 });
    await passTime(2900);
    await acquire(waiter, 'c', { queue: true });
    await leave(waiter, 'c');
    await passTime(1200);
    expect(await acquire(process, 'b')).toMatchObject(GRANTED);
  });

  it('knows its own leases, too, and does not take them for older than they are', async () => {
    const process = counted();
    await passTime(3000);
    await acquire(process, 'a');
    await passTime(900);
    expect(await acquire(process, 'b')).toMatchObject(TAKEN);
  });

  it('knows nothing of the time before it began', async () => {
    await acquire(counted(), 'dead');
    await passTime(5000);
    expect(await acquire(counted(), 'b')).toMatchObject(TAKEN);
  });

  it('never takes a lease for older than it is', async () => {
    const [process, holder] = [counted(), counted()];
    for (let index = 0; index < 60; index++) {
      const key = `key ${index}`;
      await acquire(holder, 'a', { key, ttl: 700 });
      await passTime(47);
      if (index >= 14) continue;
      expect(await acquire(process, 'b', { key })).toMatchObject(TAKEN);
    }
    // Of the last 14 all are held.
    for (let index = 47; index < 60; index++) expect(await acquire(process, 'b', { key: `key ${index}` })).toMatchObject(TAKEN);
  });

  it('asks for the count each second, and each ten seconds after a minute without use', async () => {
    let asked = 0;
    counted({ beforeCount: () => void asked++ });
    await passTime(30_500);
    expect(asked).toBeGreaterThan(25);
    await passTime(60_000);
    asked = 0;
    await passTime(60_000);
    expect(asked).toBeGreaterThan(4);
    expect(asked).toBeLessThan(8);
  });
});

describe('a store that was restored from a copy', () => {
  it('is known by its count: all that is there is seen again', async () => {
    const [holder, observer] = [counted(), counted()];
    await acquire(holder, 'a');
    const restore = copyOfStore();
    await write(holder, 2);
    await acquire(observer, 'b');
    await passTime(900);
    restore();
    expect(await remaining(observer)).toBeGreaterThan(TTL - 50);
    await passTime(200);
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
  });

  it('is not mistaken for what it was: other rows may have versions of before', async () => {
    const [holder, observer, other] = [counted(), counted(), counted()];
    const restore = copyOfStore();
    await acquire(other, 'x', { key: 'other' });
    await acquire(observer, 'b');
    await release(observer, 'b');
    const { version } = data.rows.get('key')!;
    restore();
    await acquire(observer, 'x', { key: 'other' });
    await passTime(100);
    await acquire(holder, 'a');
    await renew(holder, 'a');
    while (data.rows.get('key')!.version < version) await renew(holder, 'a');
    expect(data.rows.get('key')!.version).toBe(version);
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
    expect(await renew(holder, 'a')).toBe('renewed');
  });

  it('is not dated by what its count was before', async () => {
    const [holder, observer] = [counted(), counted()];
    const restore = copyOfStore();
    await write(holder, 50);
    await acquire(observer, 'x', { key: 'other' });
    await passTime(5000);
    restore();
    await acquire(holder, 'a');
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
  });

  it('is not dated by a reply of before that comes late', async () => {
    const [late, look] = [newGate(), newGate()];
    let [isHeld, isSlow] = [false, false];
    const observer = counted({
      after: ({ key }) => (key === 'late' && isHeld ? late.opening : undefined),
      before: ({ key }) => (key === 'key' && isSlow ? look.opening : undefined),
    });
    const holder = counted();
    const restore = copyOfStore();
    await write(holder, 50);
    isHeld = true;
    const lateReply = acquire(observer, 'b', { key: 'late' }).catch(() => undefined);
    await passTime(100);
    restore();
    await remaining(observer, 'other');
    isSlow = true;
    const reply = remaining(observer);
    await passTime(10);
    late.open();
    await lateReply;
    await passTime(500);
    await acquire(holder, 'a', { ttl: 400 });
    look.open();
    expect(await reply).toBeGreaterThan(380);
  });

  it('may be it when it was away: it is not dated by what its count was before', async () => {
    let isAway = false;
    const beforeCount = (): void => {
      if (isAway) throw new StoreError('The store is away.', { transient: true });
    };
    const [holder, observer] = [counted(), counted({ beforeCount })];
    const restore = copyOfStore();
    await write(holder, 50);
    await passTime(5500);
    isAway = true;
    restore();
    await passTime(2000);
    await acquire(holder, 'a', { ttl: 3000 });
    await write(holder, 60);
    isAway = false;
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
  });

  it('is none because a reply overtakes another one', async () => {
    const gate = newGate();
    let isHeld = false;
    const observer = counted({ after: ({ key }) => (key === 'slow' && isHeld ? gate.opening : undefined) });
    const holder = counted();
    await acquire(holder, 'a');
    await acquire(observer, 'b');
    isHeld = true;
    const slow = remaining(observer, 'slow');
    await passTime(100);
    await write(holder, 5);
    await remaining(observer, 'other');
    gate.open();
    await slow;
    await passTime(900);
    expect(await acquire(observer, 'b')).toMatchObject(GRANTED);
  });
});

describe('a sweep', () => {
  const rows = (): string[] => [...data.rows.keys()].sort();

  it('deletes what ended an hour ago, by a process that was there', async () => {
    mayTake(5 * HOUR);
    const process = counted();
    await acquire(process, 'a', { key: 'free' });
    await process.mutex.release({ key: 'free', owner: 'a', keepFor: 0 });
    await acquire(process, 'a', { key: 'ended' });
    await acquire(process, 'a', { key: 'long', ttl: 2 * HOUR });
    data.rows.set('broken', { version: '1', text: '{', revision: 1 });
    for (let minutes = 0; minutes < 55; minutes += 5) {
      await passTime(5 * 60_000);
      await remaining(process);
    }
    expect(rows()).toEqual(['broken', 'ended', 'free', 'long']);
    for (let minutes = 0; minutes < 25; minutes += 5) {
      await passTime(5 * 60_000);
      await remaining(counted());
      await remaining(process);
    }
    expect(rows()).toEqual(['broken', 'long']);
    expect(await acquire(counted(), 'b', { key: 'long' })).toMatchObject(TAKEN);
    for (let minutes = 0; minutes < 125; minutes += 5) {
      await passTime(5 * 60_000);
      await remaining(process);
    }
    expect(rows()).toEqual(['broken']);
  });

  it('deletes nothing of the time before its process began', async () => {
    mayTake(5 * HOUR);
    await acquire(newProcess(), 'a');
    data.rows.set('key', { ...data.rows.get('key')!, revision: data.count });
    await passTime(3 * HOUR);
    const process = counted();
    for (let minutes = 0; minutes < 55; minutes += 5) {
      await passTime(5 * 60_000);
      await remaining(process, 'other');
    }
    expect(rows()).toEqual(['key']);
  });
});

it.each(['{', '5', '{"record":{"kind":"mutex","holds":[{}]},"fence":1}', '{"record":null,"fence":"1"}'])(
  'a row that is not valid is an error, and no other key is affected: %s',
  async (text) => {
    const process = newProcess();
    data.rows.set('key', { version: 'x', text });
    await expect(acquire(process, 'a')).rejects.toMatchObject({ name: 'StoreError', transient: false });
    expect(await acquire(process, 'a', { key: 'other' })).toMatchObject(GRANTED);
    expect(data.rows.get('key')!.text).toBe(text);
  },
);
