import { afterTurns, mayTake } from '../support/virtual-time.js';
import { Locks, type LockStore, StoreError } from 'nestjs-distributed-lock/core';
import { recordStore } from '../../lib/stores/records/record.store.js';
import { closedAfter } from '../support/closed-after.js';
import { eventually } from '../support/eventually.js';
import { MapData, MapTable } from '../support/map-table.js';
import { pause } from '../support/time.js';

mayTake(120_000);
afterTurns(4);

/** Locks over a table that a stranger has written, on a database that can be away. */
function open() {
  const lines: string[] = [];
  const write = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger = { log: write('log'), warn: write('warn'), error: write('error') };
  /** How often it was asked whether it answers. */
  const database = { isAway: false, isReplica: false, refusesAll: false, asked: 0 };
  const before = ({ key }: { key: string }): void => {
    if (key.endsWith(':health')) database.asked++;
    if (database.isAway) throw new StoreError('Stranger: broken.', { transient: true, cause: new Error('socket hang up') });
    if (database.isReplica && (database.refusesAll || !key.endsWith(':health')))
      throw new StoreError('Stranger: a replica now.', { transient: true, isRefusal: true });
  };
  const troubles = new Set<() => void>();
  const store: LockStore = {
    ...recordStore(new MapTable(new MapData(), { before })),
    onTrouble(listener) {
      troubles.add(listener);
      return () => troubles.delete(listener);
    },
  };
  const locks = closedAfter(new Locks(store, { logger, shutdownTimeout: 0 }));
  const trouble = () => troubles.forEach((listener) => listener());
  return { locks, lines, database, trouble, troubles, fail: () => locks.acquire('key', { waitTimeout: 0 }).catch(() => undefined) };
}

const AWAY = /^warn Map does not answer since \d{4}-\d\d-\d\dT[\d:.]+Z: socket hang up; locks wait \[NDL_STORE_AWAY\]$/;

describe('the log of a store that knows nothing of outages', () => {
  it('says once that it does not answer, after a requestTimeout, and once that it is back', async () => {
    const { locks, lines, database, fail } = open();
    await locks.using('key', () => undefined);
    const since = Date.now();
    database.isAway = true;
    await fail();
    await pause(900);
    expect(lines).toEqual([]);
    await pause(30_000);
    await fail();
    expect(lines).toEqual([expect.stringMatching(AWAY)]);
    expect(Date.parse(/since (\S+):/.exec(lines[0]!)![1]!) - since).toBeLessThan(10);
    database.isAway = false;
    await pause(600);
    expect(lines.slice(1)).toEqual([expect.stringMatching(/^warn Map answers again after 31 s \[NDL_STORE_BACK\]$/)]);
  });

  it('says it because of a renewal, too', async () => {
    const { locks, lines, database } = open();
    const lease = await locks.acquire('key', { keyTimeout: 9_000 });
    database.isAway = true;
    await pause(5_000);
    database.isAway = false;
    await pause(1_000);
    expect(lines).toEqual([
      expect.stringMatching(AWAY),
      expect.stringMatching(/^warn Map answers again after 2(\.\d)? s \[NDL_STORE_BACK\]$/),
    ]);
    expect(await lease.release()).toBe(true);
  });

  it('says nothing of one that answers again within a requestTimeout, nor asks it any more', async () => {
    const { lines, database, fail } = open();
    database.isAway = true;
    await fail();
    await pause(400);
    database.isAway = false;
    await pause(200);
    const { asked } = database;
    await pause(60_000);
    expect(database.asked).toBe(asked);
    expect(lines).toEqual([]);
  });

  it('says nothing after the locks are closed, and asks nothing', async () => {
    const { locks, lines, database, troubles, fail } = open();
    database.isAway = true;
    await fail();
    await locks.close();
    const { asked } = database;
    await pause(10_000);
    expect(database.asked).toBe(asked);
    expect(lines).toEqual([]);
    expect(troubles.size).toBe(0);
  });

  it('says at startup that it cannot be reached, and later that it is back', async () => {
    const { locks, lines, database } = open();
    database.isAway = true;
    await locks.checkStore('orders').catch(() => undefined);
    await pause(5_000);
    database.isAway = false;
    await pause(600);
    expect(lines).toEqual([
      'warn Store "orders": Map cannot be reached: Stranger: broken (socket hang up); locks wait until it answers [NDL_STORE_AWAY]',
      expect.stringMatching(/^warn Map answers again after 5(\.\d)? s \[NDL_STORE_BACK\]$/),
    ]);
  });
});

it('the log of a store that says when something is wrong names an outage without a request, and no trouble that is over', async () => {
  const { lines, database, trouble } = open();
  trouble();
  await pause(2_000);
  expect(lines).toEqual([]);
  database.isAway = true;
  trouble();
  await eventually(() => lines.length > 0);
  expect(lines).toEqual([expect.stringMatching(AWAY)]);
});

describe('the line of a start', () => {
  it('does not say that the store answers, nor does a later one, where a request was refused meanwhile', async () => {
    const { locks, lines, database, fail } = open();
    database.isReplica = true;
    const checking = locks.checkStore('orders');
    await fail();
    await expect(checking).rejects.toThrow('a replica now');
    await pause(60_000);
    expect(lines).toEqual(['warn Map refuses requests: a replica now [NDL_STORE_REFUSES]']);
    database.isReplica = false;
    await locks.using('key', () => undefined);
    await locks.checkStore('orders');
    expect(lines.slice(1)).toEqual([
      'warn Map grants locks again [NDL_STORE_BACK]',
      expect.stringMatching(/^log Store "orders": Map answers in /),
    ]);
  });

  it('that cannot reach the store is followed by its refusal, where that is its first answer', async () => {
    const { locks, lines, database } = open();
    database.isAway = true;
    await locks.checkStore().catch(() => undefined);
    database.isAway = false;
    database.isReplica = database.refusesAll = true;
    await pause(5_000);
    expect(lines.slice(1)).toEqual(['warn Map refuses requests: a replica now [NDL_STORE_REFUSES]']);
    database.isReplica = false;
    await locks.using('key', () => undefined);
    expect(lines.slice(2)).toEqual(['warn Map grants locks again [NDL_STORE_BACK]']);
  });
});
