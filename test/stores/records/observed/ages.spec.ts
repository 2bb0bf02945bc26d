import type { LockStore } from '../../../../lib/core/store/lock-store.js';
import { mayTake, passTime } from '../../../support/virtual-time.js';
import { acquire, counted, data, GRANTED, HOUR, leave, newProcess, release, remaining, TAKEN, TTL } from './setting.js';

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
    mayTake(200_000);
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

describe('a sweep', () => {
  const rows = (): string[] => [...data.rows.keys()].filter((key) => key !== '\tswept').sort();
  async function passMinutes(minutes: number, process: LockStore): Promise<void> {
    for (let passed = 0; passed < minutes; passed += 5) {
      await passTime(5 * 60_000);
      await remaining(process, 'looked at');
    }
  }
  /** As a process whose wall clock is ahead by so much. */
  async function ahead<T>(milliseconds: number, work: () => Promise<T>): Promise<T> {
    const { now } = Date;
    Date.now = () => now.call(Date) + milliseconds;
    try {
      return await work();
    } finally {
      Date.now = now;
    }
  }

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

  it.each(['mutex', 'readWriteLock'] as const)(
    'does not make the tokens of a %s smaller, though the wall clock of the next process is hours behind',
    async (kind) => {
      mayTake(5 * HOUR);
      const [process, behind] = [counted(), counted()];
      const take = (store: LockStore) => {
        const driver = kind === 'mutex' ? store.mutex : store.readWriteLock!.write;
        const share = kind === 'mutex' ? {} : { share: { count: Infinity, permits: Infinity, rank: 0 } as const };
        return driver.acquire({ key: 'key', owner: 'a', ttl: TTL, tokens: 10, queue: false, ...share });
      };
      const first = await take(process);
      await ahead(-2 * HOUR, () => acquire(behind, 'a', { key: 'other' }));
      await passMinutes(85, process);
      expect(rows()).toEqual([]);
      const second = await ahead(-4 * HOUR, () => take(behind));
      expect((second as { token: number }).token).toBeGreaterThanOrEqual((first as { token: number }).token + 10);
    },
  );

  it('keeps a row whose fence is ahead of the wall clock until it is not', async () => {
    mayTake(9 * HOUR);
    const process = counted();
    await ahead(3 * HOUR, () => acquire(process, 'a'));
    await passMinutes(120, process);
    expect(rows()).toEqual(['key']);
    await passMinutes(100, process);
    expect(rows()).toEqual([]);
  });

  it('keeps from operators the row in which it notes the largest fence', async () => {
    mayTake(5 * HOUR);
    const process = counted();
    await acquire(process, 'a');
    await passMinutes(85, process);
    expect([...data.rows.keys()]).toEqual(['\tswept']);
    const listed: string[] = [];
    for await (const keys of process.inspector!.keys('', false)) listed.push(...keys);
    expect(listed).toEqual([]);
  });
});

it('a fence after which there is no number is refused before it is written', async () => {
  const process = newProcess();
  const text = JSON.stringify({ record: null, fence: Number.MAX_SAFE_INTEGER });
  data.rows.set('key', { version: 'x', text });
  await expect(acquire(process, 'a')).rejects.toMatchObject({ name: 'StoreError', transient: false, key: 'key' });
  expect(data.rows.get('key')!.text).toBe(text);
  expect(await acquire(process, 'a', { key: 'other' })).toMatchObject(GRANTED);
});
