import { afterTurns } from '../../support/virtual-time.js';
import { StoreError } from '../../../lib/core/model/errors.js';
import type { AcquireRequest, LeaseDriver } from '../../../lib/core/store/lease-driver.js';
import { recordStore } from '../../../lib/stores/records/record.store.js';
import type { Change, Found } from '../../../lib/stores/records/record.table.js';
import { eventually } from '../../support/eventually.js';
import { MapData, MapTable } from '../../support/map-table.js';

afterTurns(60);

// A server that crashes loses what it was told lately and lazily. What somebody relies on it may not lose.
class LazyTable extends MapTable {
  /** What is on the disk: in the order of the changes. */
  private durable = [...this.data.rows];

  crash(): void {
    this.data.rows.clear();
    for (const [key, row] of this.durable) this.data.rows.set(key, row);
  }

  protected override apply(change: Change): Found {
    const found = super.apply(change);
    if (found.written && !change.isLazy) this.durable = [...this.data.rows];
    return found;
  }
}

describe('a crash of the server', () => {
  let table: LazyTable;
  let mutex: LeaseDriver;

  beforeEach(() => {
    table = new LazyTable(new MapData());
    mutex = recordStore(table).mutex;
  });

  const acquire = (owner: string, request: Partial<AcquireRequest> = {}) =>
    mutex.acquire({ key: 'key', owner, ttl: 20_000, tokens: 1, queue: true, ...request });
  const release = (owner: string, keepFor = 0) => mutex.release({ key: 'key', owner, keepFor });
  /** As a process sees it that knows nothing. */
  const stateAfterCrash = async (owner: string) => {
    table.crash();
    return recordStore(new MapTable(table.data)).mutex.check({ key: 'key', owner });
  };

  it('loses no grant', async () => {
    await acquire('a');
    expect(await stateAfterCrash('a')).toMatchObject({ state: 'held' });
  });

  it('loses no grant of what was offered', async () => {
    await acquire('a');
    await acquire('b');
    await release('a');
    // As long as the offer: nothing but its holder changes.
    expect(await acquire('b', { ttl: 500 })).toMatchObject({ granted: true });
    expect(await stateAfterCrash('b')).toMatchObject({ state: 'held' });
  });

  it('loses no token that was given', async () => {
    const first = await acquire('a', { ttl: 20_000 });
    const second = await acquire('a', { ttl: 1_000 });
    expect(first.granted && second.granted && second.token! > first.token!).toBe(true);
    expect((await stateAfterCrash('a')).token).toBe(second.granted && second.token);
  });

  it('loses no renewal', async () => {
    await acquire('a', { ttl: 1_000 });
    await mutex.renew([{ key: 'key', owner: 'a', ttl: 60_000 }])[0];
    expect((await stateAfterCrash('a')).remaining).toBeGreaterThan(30_000);
  });

  it('loses no minHold', async () => {
    await acquire('a', { ttl: 1_000 });
    await release('a', 60_000);
    const { state, remaining } = await stateAfterCrash('b');
    expect(state).toBe('taken');
    expect(remaining).toBeGreaterThan(30_000);
  });
});

// A request whose outcome nobody knows may arrive at the table later than what was asked after it.
describe('an acquire that arrives after its owner has given up', () => {
  let data: MapData;
  let mutex: LeaseDriver;
  let other: LeaseDriver;
  /** Sends what was lost. */
  let arrive: () => Promise<boolean>;

  beforeEach(async () => {
    data = new MapData();
    let lost: Change | undefined;
    const before = (change: Change): void => {
      if (lost || change.expected === undefined || change.key !== 'key') return;
      lost = change;
      throw new StoreError('The connection was lost.', { transient: true });
    };
    mutex = recordStore(new MapTable(data, { before })).mutex;
    other = recordStore(new MapTable(data)).mutex;
    arrive = async () => (await new MapTable(data).exchange([lost!])[0]!).written;
    await acquire('nobody', mutex, 'another key');
    await expect(acquire('a')).rejects.toThrow('lost');
  });

  const acquire = (owner: string, driver = mutex, key = 'key', ttl = 20_000) =>
    driver.acquire({ key, owner, ttl, tokens: 1, queue: false });
  const release = (owner: string, driver = mutex) => driver.release({ key: 'key', owner, keepFor: 0 });
  const state = async () => (await other.check({ key: 'key', owner: 'b' })).state;

  it('is too late', async () => {
    await mutex.leave({ key: 'key', owner: 'a' });
    expect(await arrive()).toBe(false);
  });

  it('is too late, also if another process had the key meanwhile', async () => {
    await mutex.leave({ key: 'key', owner: 'a' });
    expect(await acquire('b', other)).toMatchObject({ granted: true });
    await release('b', other);
    expect(await arrive()).toBe(false);
    expect(await state()).toBe('free');
  });

  it('is too late, also if the lease of another process has run out meanwhile', async () => {
    await mutex.leave({ key: 'key', owner: 'a' });
    await acquire('b', other, 'key', 20);
    await eventually(async () => (await state()) === 'free');
    expect(await arrive()).toBe(false);
  });

  it('is too late, also if its owner asked again, and has released the key', async () => {
    await acquire('a');
    expect(await release('a')).toBe('released');
    expect(await arrive()).toBe(false);
  });

  it('does not make another kind of lock of the key', async () => {
    await mutex.leave({ key: 'key', owner: 'a' });
    const { semaphore } = recordStore(new MapTable(data));
    const share = { count: 1, permits: 2, rank: 0 } as const;
    expect(await semaphore!.acquire({ key: 'key', owner: 'b', ttl: 20_000, tokens: 1, queue: false, share })).toMatchObject({
      granted: true,
    });
    await semaphore!.release({ key: 'key', owner: 'b', keepFor: 0 });
    expect(await arrive()).toBe(false);
  });
});
