// A request whose outcome nobody knows may arrive at the table later than what was asked after it.
import { StoreError } from '../../../lib/core/model/errors.js';
import type { LeaseDriver } from '../../../lib/core/store/lease-driver.js';
import { recordStore } from '../../../lib/stores/records/record.store.js';
import type { Change } from '../../../lib/stores/records/record.table.js';
import { eventually } from '../../support/eventually.js';
import { MapData, MapTable } from '../../support/map-table.js';

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

  it('is too late, also if another owner of its process had the key meanwhile', async () => {
    await acquire('b');
    await mutex.leave({ key: 'key', owner: 'a' });
    await release('b');
    expect(await arrive()).toBe(false);
    expect(await state()).toBe('free');
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
