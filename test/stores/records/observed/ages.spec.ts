import { mayTake, passTime } from '../../../support/virtual-time.js';
import { acquire, counted, data, GRANTED, HOUR, leave, newProcess, release, remaining, TAKEN } from './setting.js';

describe('a process that has never looked at a key', () => {
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

it('a fence after which there is no number is refused before it is written', async () => {
  const process = newProcess();
  const text = JSON.stringify({ record: null, fence: Number.MAX_SAFE_INTEGER });
  data.rows.set('key', { version: 'x', text });
  await expect(acquire(process, 'a')).rejects.toMatchObject({ name: 'StoreError', transient: false, key: 'key' });
  expect(data.rows.get('key')!.text).toBe(text);
  expect(await acquire(process, 'a', { key: 'other' })).toMatchObject(GRANTED);
});
