import { passTime } from '../../../support/virtual-time.js';
import { StoreError } from '../../../../lib/core/model/errors.js';
import type { LockStore } from '../../../../lib/core/store/lock-store.js';
import { gate } from '../../../support/gate.js';
import { acquire, counted, data, GRANTED, release, remaining, renew, table, TAKEN, TTL } from './setting.js';

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

  it('is not dated by a reply of before that comes late', async () => {
    const [late, look] = [gate(), gate()];
    let [isHeld, isSlow] = [false, false];
    const observer = counted({
      after: ({ key }) => (key === 'late' && isHeld ? late.passed : undefined),
      before: ({ key }) => (key === 'key' && isSlow ? look.passed : undefined),
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

  it('is not suspected when a table was closed, over which no answer came: what others have seen stays', async () => {
    const storeId = 'shared';
    const held = gate();
    let isSlow = false;
    const beforeCount = (): Promise<void> | undefined => (isSlow ? held.passed.then(() => Promise.reject(new Error('closed'))) : undefined);
    const [closing, observer, holder] = [counted({ storeId, beforeCount }), counted({ storeId }), counted()];
    const ttl = 3 * TTL;
    await acquire(holder, 'a', { ttl });
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
    isSlow = true;
    await passTime(ttl / 2);
    await closing.close();
    held.open();
    await passTime(ttl / 2);
    expect(await acquire(observer, 'b')).toMatchObject(GRANTED);
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
    const held = gate();
    let isHeld = false;
    const observer = counted({ after: ({ key }) => (key === 'slow' && isHeld ? held.passed : undefined) });
    const holder = counted();
    await acquire(holder, 'a');
    await acquire(observer, 'b');
    isHeld = true;
    const slow = remaining(observer, 'slow');
    await passTime(100);
    await write(holder, 5);
    await remaining(observer, 'other');
    held.open();
    await slow;
    await passTime(900);
    expect(await acquire(observer, 'b')).toMatchObject(GRANTED);
  });
});

describe('another store with the same id', () => {
  /** Its count is as large as that of the first one, which is no proof that it is the same. */
  function becomesAnother(): void {
    data.rows.clear();
    data.name = 'another';
  }
  const permit = (store: LockStore, owner: string) =>
    store.semaphore!.acquire({ key: 'key', owner, ttl: TTL, tokens: 1, queue: false, share: { count: 1, permits: 2, rank: 0 } });

  it('is not dated by what a store of this process has seen there that was closed', async () => {
    const storeId = 'again';
    const first = counted({ storeId });
    await write(first, 20);
    await passTime(2 * TTL);
    await first.close();
    const count = data.count;
    becomesAnother();
    data.count = 1;
    await acquire(counted(), 'a');
    data.count = count;
    expect(await acquire(counted({ storeId }), 'b')).toMatchObject(TAKEN);
  });

  it('is noticed by all tables of the store, whichever of them it answers first', async () => {
    const storeId = 'noticed';
    data.name = 'first';
    const [one, two] = [counted({ storeId }), counted({ storeId })];
    await write(one, 20);
    await acquire(two, 'x', { key: 'other' });
    await passTime(2 * TTL);
    becomesAnother();
    await acquire(counted(), 'a');
    // It was written when the count of this one was small.
    data.rows.set('key', { ...data.rows.get('key')!, revision: 1 });
    expect(await acquire(counted({ storeId }), 'b')).toMatchObject(TAKEN);
    expect(await acquire(two, 'b')).toMatchObject(TAKEN);
  });

  it('dates nothing by the reply that shows it: a permit of it is not free early', async () => {
    data.name = 'first';
    const [process, observer] = [counted(), counted()];
    await write(process, 20);
    becomesAnother();
    await remaining(observer);
    await passTime(TTL);
    expect(await permit(process, 'a')).toMatchObject(GRANTED);
    expect(await permit(process, 'b')).toMatchObject(GRANTED);
    expect(await permit(observer, 'c')).toMatchObject(TAKEN);
  });

  it('may answer after each broken connection: what was seen before is looked at again', async () => {
    const holder = counted();
    const restore = copyOfStore();
    const observer = counted();
    const { breaks } = { breaks: table.breaks.bind(table) };
    await acquire(observer, 'b');
    await release(observer, 'b');
    const [{ version }, { count }] = [data.rows.get('key')!, data];
    restore();
    await acquire(holder, 'a');
    while (data.rows.get('key')!.version < version) await renew(holder, 'a');
    expect(data.rows.get('key')!.version).toBe(version);
    data.count = count;
    breaks();
    expect(await acquire(observer, 'b')).toMatchObject(TAKEN);
    expect(await renew(holder, 'a')).toBe('renewed');
  });
});
