import { afterTurns, passTime } from '../../support/virtual-time.js';
import { Locks } from 'nestjs-distributed-lock/core';
import { StoreError, UnsupportedPrimitiveError } from '../../../lib/core/model/errors.js';
import type { AcquireRequest } from '../../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { recordStore } from '../../../lib/stores/records/record.store.js';
import { TOUCH, type Change, type Found } from '../../../lib/stores/records/record.table.js';
import { eventually } from '../../support/eventually.js';
import { MapData, MapTable, type MapTableHooks } from '../../support/map-table.js';

afterTurns(60);
const REQUEST_TIMEOUT = 300;

describe('a process that asks a table', () => {
  let data: MapData;
  let store: LockStore;
  let other: LockStore;
  let table: MapTable;
  /** Of the process, in their order, once it knows the time. */
  let sent: { readonly change: Change; readonly found: Found }[];
  let before: MapTableHooks['before'];

  beforeEach(async () => {
    data = new MapData();
    before = undefined;
    const after = (change: Change, found: Found): void => void sent.push({ change, found });
    table = new MapTable(data, { before: (change) => before?.(change), after }, REQUEST_TIMEOUT);
    store = recordStore(table);
    other = recordStore(new MapTable(data));
    sent = [];
    await acquire({ key: 'warm-up' });
    sent = [];
  });

  const acquire = (request: Partial<AcquireRequest> = {}, by = store) =>
    by.mutex.acquire({ key: 'key', owner: 'a', ttl: 20_000, tokens: 1, queue: false, ...request });
  const release = (owner = 'a', by = store) => by.mutex.release({ key: 'key', owner, keepFor: 0 });
  const written = () => sent.filter(({ found }) => found.written);

  it('needs one exchange for a key that is free, and one to release it', async () => {
    await acquire();
    expect(sent).toHaveLength(1);
    await release();
    expect(sent).toHaveLength(2);
    await acquire({ owner: 'b' });
    expect(sent).toHaveLength(3);
    expect(written()).toHaveLength(3);
  });

  it('needs one exchange to learn that a key is taken, and changes nothing', async () => {
    await acquire({ owner: 'b' }, other);
    expect(await acquire()).toMatchObject({ granted: false, holder: 'b' });
    expect(sent).toHaveLength(1);
    expect(await acquire()).toMatchObject({ granted: false, holder: 'b' });
    expect(sent).toHaveLength(2);
    expect(written()).toEqual([]);
  });

  it('does not believe what it saw last: a key may be free again, and its own lease may have been taken away', async () => {
    await acquire({ owner: 'b' }, other);
    await acquire();
    await release('b', other);
    expect(await acquire()).toMatchObject({ granted: true });
    await release('a', other);
    expect(await release()).toBe('lost');
  });

  it('sends no change that nobody waits for any more, and never two of one key together', async () => {
    const busy = Object.assign(new MapTable(data, { before: () => until }, REQUEST_TIMEOUT), { atOnce: 1 });
    let open = (): void => undefined;
    let until: Promise<void> | undefined;
    const keys: string[][] = [];
    const exchange = busy.exchange.bind(busy);
    busy.exchange = (changes) => {
      keys.push(changes.map(({ key }) => key));
      return exchange(changes);
    };
    const waiting = recordStore(busy);
    await acquire({ key: 'known' }, waiting);
    keys.length = 0;
    until = new Promise((resolve) => (open = resolve));
    const stuck = acquire({ key: 'stuck' }, waiting).catch((error: unknown) => error);
    await eventually(() => keys.length === 1);
    // So many go with the next exchange, which is sent after a requestTimeout.
    const next = Array.from({ length: 256 }, (_, index) => acquire({ key: `next ${index}` }, waiting).catch((error: unknown) => error));
    const given = acquire({}, waiting).catch((error: unknown) => error);
    for (const each of [stuck, ...next, given]) expect(await each).toBeInstanceOf(StoreError);
    expect(keys.map(({ length }) => length)).toEqual([1, 256]);
    until = undefined;
    await waiting.mutex.leave({ key: 'key', owner: 'a' });
    expect(await acquire({ owner: 'b' }, waiting)).toMatchObject({ granted: true });
    expect(keys.filter((each) => new Set(each).size < each.length)).toEqual([]);
    open();
  });

  it('never conflicts with itself', async () => {
    await Promise.all(
      Array.from({ length: 50 }, async (_, index) => {
        await acquire({ owner: `o${index}` });
        await store.mutex.leave({ key: 'key', owner: `o${index}` });
      }),
    );
    expect(sent.filter(({ change, found }) => change.expected !== undefined && !found.written)).toEqual([]);
  });

  it('makes one that is faster each time look first, and gets in', async () => {
    await acquire();
    let [conflicts, isTouched] = [0, false];
    before = async (change) => {
      if (change.expected === TOUCH) isTouched = true;
      if (change.expected === undefined || isTouched) return;
      conflicts++;
      await acquire({ owner: 'b', queue: true }, other);
      await other.mutex.leave({ key: 'key', owner: 'b' });
    };
    expect(await store.mutex.renew([{ key: 'key', owner: 'a', ttl: 60_000 }])[0]).toBe('renewed');
    // Before, a touch is more likely to stop many who are slow than one who is fast.
    expect(conflicts).toBe(16);
  });

  it('says that others are faster, if that is why it gets no answer', async () => {
    await acquire();
    before = async (change) => {
      await passTime(60);
      if (change.expected === undefined) return;
      await acquire({ owner: 'b', queue: true }, other);
      await other.mutex.leave({ key: 'key', owner: 'b' });
    };
    await expect(store.mutex.renew([{ key: 'key', owner: 'a', ttl: 60_000 }])[0]).rejects.toThrow('within 300 ms: other processes have');
  });

  describe('beside very many readers', () => {
    const read = (owner: string, by: LockStore) =>
      by.readWriteLock!.read.acquire({
        key: 'doc',
        owner,
        ttl: 20_000,
        tokens: 1,
        queue: false,
        share: { count: 1, permits: Infinity, rank: 0 },
      });

    it('lets 1,000 of them in by two changes', async () => {
      const replies = await Promise.all(Array.from({ length: 1000 }, (_, index) => read(`reader ${index}`, store)));
      expect(replies.every(({ granted }) => granted)).toBe(true);
      expect(written()).toHaveLength(2);
    });

    it('looks before it renews, as others have renewed since', async () => {
      await read('a', store);
      for (let i = 0; i < 50; i++) await read(`reader ${i}`, other);
      const renew = () => store.readWriteLock!.read.renew([{ key: 'doc', owner: 'a', ttl: 20_000 }])[0];
      expect(await renew()).toBe('renewed');
      await passTime(7_000);
      await read('another', other);
      sent = [];
      expect(await renew()).toBe('renewed');
      expect(sent.map(({ change }) => change.expected === undefined)).toEqual([true, false]);
      expect(written()).toHaveLength(1);
    });

    it('waits longer the more of them come at once, and each is let in', async () => {
      const count = 100;
      let [lost, touches] = [0, 0];
      const trip = () => passTime(2);
      const after = async ({ expected }: Change, found: Found): Promise<void> => {
        if (expected === TOUCH) touches++;
        else if (expected !== undefined && !found.written) lost++;
        await trip();
      };
      const stores = Array.from({ length: count }, () => recordStore(new MapTable(data, { before: trip, after }, 60_000)));
      const replies = await Promise.all(stores.map((each, index) => read(`reader ${index}`, each)));
      expect(replies.every(({ granted }) => granted)).toBe(true);
      expect(lost).toBeLessThan(20 * count);
      expect(touches).toBeLessThan(count);
    });
  });

  it('gives tokens that follow what the table knows, which may be later than it knew', async () => {
    const reply = await acquire({ owner: 'b', floor: Date.now() * 1000 + 60_000_000 }, other);
    const last = reply.granted ? reply.token! : 0;
    await release('b', other);
    const one = await acquire({ tokens: 10 });
    expect(one.granted && one.token).toBeGreaterThan(last);
    expect(one.granted && one.token! + 9).toBe(data.rows.get('key')!.fence);
  });

  describe('and gets no answer', () => {
    let hangs: boolean;
    beforeEach(() => {
      hangs = true;
      before = ({ key }) => (key === 'key' && hangs ? new Promise(() => undefined) : undefined);
    });

    it('rejects within a requestTimeout what was sent, and what was not sent as unsent', async () => {
      const start = performance.now();
      const first = acquire().catch((error: unknown) => error);
      const second = acquire({ owner: 'b' }).catch((error: unknown) => error);
      expect(await first).toMatchObject({ transient: true, isUnsent: false });
      expect(await second).toMatchObject({ transient: true, isUnsent: true });
      expect(performance.now() - start).toBeLessThan(REQUEST_TIMEOUT + 1000);
    });

    it('holds up no other key, and this one for a requestTimeout', async () => {
      const first = acquire();
      expect(await acquire({ key: 'other' })).toMatchObject({ granted: true });
      await expect(first).rejects.toBeInstanceOf(StoreError);
      hangs = false;
      expect(await acquire({ owner: 'b' })).toMatchObject({ granted: true });
    });
  });

  it('rejects a grant that was written with the wrong time, when the clock of the table was set forward', async () => {
    data.offset += 60_000;
    await expect(acquire()).rejects.toThrow('set forward');
    expect(await acquire()).toMatchObject({ granted: true });
    expect((await other.mutex.check({ key: 'key', owner: 'a' })).remaining).toBeGreaterThan(15_000);
  });

  it('does not take over a lease that lasts by the clock of the table, which was set back', async () => {
    await acquire({ owner: 'b' }, other);
    await acquire();
    data.offset += 60_000;
    await store.mutex.check({ key: 'another', owner: 'a' });
    // By what the process knows, the lease ended long ago.
    data.offset -= 60_000;
    expect(await acquire()).toMatchObject({ granted: false, holder: 'b' });
  });

  describe('that others wait for', () => {
    const wait = async (owners: readonly string[], by: LockStore) => {
      const { wakeUps } = by.countDownLatch!;
      await wakeUps!.open(() => undefined);
      const woken = new Set<string>();
      for (const owner of owners) wakeUps!.listen(owner, () => woken.add(owner));
      await Promise.all(owners.map((owner) => by.countDownLatch!.look({ key: 'latch', owner, queue: true })));
      return woken;
    };
    const owners = Array.from({ length: 200 }, (_, index) => `owner ${index} with a name of some length`);
    const change = (number: number) => ({ key: 'latch', ttl: 20_000, operation: { line: 'line', number } });
    beforeEach(async () => {
      await store.countDownLatch!.trySetCount({ ...change(1), count: 1 });
    });

    it('sends messages in pieces, each of whole lines', async () => {
      const woken = await wait(owners, other);
      await store.countDownLatch!.countDown(change(2));
      await eventually(() => expect([...woken].sort()).toEqual([...owners].sort()));
      const messages = sent.flatMap(({ change: { messages } }) => messages);
      expect(messages.length).toBeGreaterThan(1);
      for (const { text } of messages) expect(text.length).toBeLessThanOrEqual(2000);
    });

    it('wakes its own without a message', async () => {
      const woken = await wait(owners, store);
      await store.countDownLatch!.countDown(change(2));
      expect(woken.size).toBe(owners.length);
      expect(sent.flatMap(({ change: { messages } }) => messages)).toEqual([]);
    });
  });

  it('asks for the renewals of one turn together, one change for each key', async () => {
    const keys = Array.from({ length: 300 }, (_, index) => `key ${index}`);
    await Promise.all(keys.map((key) => acquire({ key })));
    const exchange = jest.spyOn(table, 'exchange');
    const replies = await Promise.all(store.mutex.renew(keys.map((key) => ({ key, owner: 'a', ttl: 30_000 }))));
    expect(new Set(replies)).toEqual(new Set(['renewed']));
    expect(exchange.mock.calls.map(([changes]) => changes.length)).toEqual([256, 44]);
  });
});

const KEYS = Array.from({ length: 50 }, (_, i) => `key-${i}`);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** Serves one exchange at a time, and answers when it is told to. */
class SlowTable extends MapTable {
  readonly atOnce = 1;
  readonly sizes: number[] = [];
  private answers: (() => void)[] = [];

  override exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    this.sizes.push(changes.length);
    const answered = new Promise<void>((resolve) => this.answers.push(resolve));
    return super.exchange(changes).map((found) => answered.then(() => found));
  }

  answer(): void {
    for (const answer of this.answers.splice(0)) answer();
  }
}

const acquire = (store: ReturnType<typeof recordStore>, key: string): Promise<unknown> =>
  store.mutex.acquire({ key, owner: `owner of ${key}`, ttl: 1_000, queue: false, tokens: 1 });

it('a table without keys() cannot be listed, but inspected', async () => {
  const locks = new Locks(recordStore(Object.assign(new MapTable(), { keys: undefined })), { logger: false });
  const lease = await locks.acquire('key');
  expect(await locks.inspect('key')).toMatchObject({ holders: [{ owner: lease.owner }] });
  await expect(locks.list()[Symbol.asyncIterator]().next()).rejects.toThrow(UnsupportedPrimitiveError);
  await lease.release();
  await locks.close();
});

describe('what comes while a table is busy', () => {
  it('waits, and goes together', async () => {
    const table = new SlowTable();
    const store = recordStore(table);
    const all = Promise.all(
      KEYS.map(async (key) => {
        await turn();
        return acquire(store, key);
      }),
    );
    const first = acquire(store, 'first');
    let isOver = false;
    void all.finally(() => (isOver = true));
    while (!isOver) {
      await turn();
      await turn();
      table.answer();
    }
    expect(await first).toMatchObject({ granted: true });
    expect(await all).toHaveLength(KEYS.length);
    // The first looks, since the clock is not known.
    expect(table.sizes.slice(0, 2)).toEqual([1, KEYS.length + 1]);
  });

  it('goes when a requestTimeout is over, whatever is not answered', async () => {
    const table = new SlowTable(new MapData(), {}, 100);
    const store = recordStore(table);
    await expect(acquire(store, 'first')).rejects.toThrow('did not answer within 100 ms');
    void acquire(store, 'second').catch(() => undefined);
    await passTime(50);
    expect(table.sizes).toEqual([1, 1]);
  });
});
