// The programs of README.md, docs/semaphore.md, read-write-lock.md and multi-lock.md, on a real server.
import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import type * as Bank from './multi-lock.js';
import type * as Partner from './permits.js';
import type * as Prices from './read-write.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import type * as Shop from './without-nest.js';

let bank: typeof Bank;
let partner: typeof Partner;
let prices: typeof Prices;
let shop: typeof Shop;
const archive = new Locks(memoryStore(), { logger: false });
afterAll(() => Promise.all([bank, partner, prices, shop, { locks: archive }].map(({ locks }) => locks.close())));
const setting = useRedisOfEnv(); // its server ends after the programs

beforeAll(async () => {
  [bank, partner, prices] = [await import('./multi-lock.js'), await import('./permits.js'), await import('./read-write.js')];
  shop = await import('./without-nest.js');
});

describe('a semaphore', () => {
  it('admits three at a time', async () => {
    const sent = await Promise.all(Array.from({ length: 20 }, (_, order) => partner.send(`order ${order}`)));
    expect(sent.at(-1)).toBe('order 19 sent');
    expect(partner.atWork).toMatchObject({ now: 0, most: 3, calls: 20 });
  });

  it('counts a bulk call as two', async () => {
    const single = partner.locks.semaphore('partner-api', { permits: 3 });
    const held = [await single.acquire(), await single.acquire()];
    const { calls } = partner.atWork;
    const waiting = partner.sendAll(['one', 'two']);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(partner.atWork.calls).toBe(calls);
    await held[0]!.release();
    expect(await waiting).toBe('2 orders sent');
    await held[1]!.release();
  });
});

describe('a read/write lock', () => {
  it('shows readers all new prices or none', async () => {
    const raising = prices.raise(10);
    let isOver = false;
    void raising.finally(() => (isOver = true));
    const totals: number[] = [];
    while (!isOver) totals.push(await prices.total(['apple', 'pear']));
    totals.push(await prices.total(['apple', 'pear']));
    expect(totals.filter((total) => total !== 300 && total !== 330)).toEqual([]);
    expect(totals.at(-1)).toBe(330);
  });

  it('lets others read, but not write, while a writer publishes what it wrote', async () => {
    const setting = prices.setPrice('pear', 250);
    const { read, write } = prices.locks.readWriteLock('prices');
    await eventually(() => prices.press.isWaiting);
    await using reader = await read.tryAcquire();
    expect(reader).not.toBeNull();
    expect(await write.tryAcquire()).toBeNull();
    prices.press.go();
    await setting;
    expect(prices.press.published).toEqual([expect.stringMatching(/ 250$/)]);
    expect(await prices.total(['pear'])).toBe(250);
  });
});

describe('a multi-lock', () => {
  it('loses no money between accounts that many move at once', async () => {
    const accounts = ['anna', 'ben', 'cleo'];
    for (const account of accounts) bank.balances.set(account, 100);
    const transfers = Array.from({ length: 30 }, (_, index) =>
      bank.transfer(accounts[index % 3]!, accounts[(index + 1 + (index % 2)) % 3]!, 1),
    );
    await Promise.all(transfers);
    expect([...bank.balances.values()].reduce((sum, balance) => sum + balance, 0)).toBe(300);
    expect(await setting.redis.keys('bank:*')).toEqual([]);
  });

  it('takes what it needs of two stores, or nothing', async () => {
    const keys: string[] = [];
    expect(await bank.audit(archive, 'anna', async ({ key, leases }) => void keys.push(key, String(leases.length)))).toBe(true);
    expect(keys).toEqual(['bank:anna, bank:rates, ledger', '3']);
    await archive.using('ledger', async () => {
      expect(await bank.audit(archive, 'anna', async () => undefined)).toBe(true); // the call chain holds the ledger
    });
    const other = await archive.acquire('ledger');
    expect(await bank.audit(archive, 'anna', async () => undefined)).toBe(false);
    await other.release();
  });
});

describe('a mutex', () => {
  it('runs work under a key, and releases it', async () => {
    await expect(shop.ship('42')).resolves.toBe('42 packed under number');
    await expect(shop.shipIfFree('42')).resolves.toBe('42 packed under number');
    expect(await setting.redis.keys('*')).toEqual(['{shop:order:42}:fence']);
  });

  it('waits, or returns at once, where another process has the key', async () => {
    await setting.redis.set('shop:order:42', 'another process', 'PX', 30_000);
    await expect(shop.shipIfFree('42')).resolves.toBe('another process is packing it');
    await expect(shop.ship('42')).rejects.toThrow(LockTimeoutError);
  });
});
