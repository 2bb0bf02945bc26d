import { mayTake, passTime } from '../../../support/virtual-time.js';
import os from 'node:os';
import { StoreError } from '../../../../lib/core/model/errors.js';
import type { LockStore } from '../../../../lib/core/store/lock-store.js';
import type { CasChange } from '../../../../lib/stores/records/observed/cas.table.js';
import type { KeyRecord, LatchRecord, LeaseRecord } from '../../../../lib/stores/records/record.work.js';
import { countSuspend, exactNow } from '../../../../lib/core/util/clock.js';
import { gate } from '../../../support/gate.js';
import { acquire, counted, data, GRANTED, HOUR, leave, newProcess, release, remaining, renew, TAKEN, TTL } from './setting.js';

const inRow = <T extends KeyRecord = LeaseRecord>(key = 'key'): T => (JSON.parse(data.rows.get(key)!.text) as { record: T }).record;

describe('a lease', () => {
  it('lasts as long for an observer that takes its machine to have been suspended', async () => {
    const [holder, observer] = [newProcess(), newProcess()];
    await acquire(holder, 'a');
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
    const [uptime, before] = [os.uptime.bind(os), exactNow()];
    const spy = jest.spyOn(os, 'uptime').mockImplementation(() => uptime() + 60);
    countSuspend();
    spy.mockRestore();
    expect(exactNow() - before).toBeGreaterThan(TTL);
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
    await passTime(TTL + 50);
    expect(await acquire(observer, 'b')).toMatchObject(GRANTED);
  });

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
    const held = gate();
    let isFirst = true;
    const before = ({ expected }: CasChange): Promise<void> | void => {
      if (!isFirst || expected === 'look') return;
      isFirst = false;
      return held.passed;
    };
    const [late, other] = [newProcess({ before }), newProcess()];
    await expect(acquire(late, 'a')).rejects.toThrow(StoreError);
    expect(await acquire(other, 'b', { ttl: 100 })).toMatchObject(GRANTED);
    await release(other, 'b');
    const row = data.rows.get('key');
    held.open();
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
    const held = gate();
    const [holder, observer] = [newProcess(), newProcess({ before: () => held.passed })];
    const first = remaining(observer);
    await passTime(500);
    await acquire(holder, 'a', { ttl: 600 });
    held.open();
    expect(await first).toBeGreaterThan(580);
    await passTime(580);
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
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
