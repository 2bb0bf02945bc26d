// The programs that the documents show, on one Redis.
import type { Provider } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLockModule, LockAbortedError, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { NightlyImport } from './count-down-latch.js';
import { Relay, status, watch, type Channel } from './leader-election.js';
import { StocktakeService, TillService } from './lease.js';
import type * as Bank from './multi-lock.js';
import type * as Partner from './permits.js';
import type * as Prices from './read-write.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';
import { SqlTable } from './stand-ins/sql-table.js';
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
    const waits = new Promise((resolve) => partner.locks.on('waiting', resolve));
    const bulk = partner.sendAll(['one', 'two']);
    await waits;
    expect(partner.atWork.calls).toBe(calls);
    await held[0]!.release();
    expect(await bulk).toBe('2 orders sent');
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
    const change = prices.setPrice('pear', 250);
    const { read, write } = prices.locks.readWriteLock('prices');
    await eventually(() => prices.press.isWaiting);
    await using reader = await read.tryAcquire();
    expect(reader).not.toBeNull();
    expect(await write.tryAcquire()).toBeNull();
    prices.press.go();
    await change;
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

describe('a count-down latch', () => {
  const loaded: string[] = [];
  const instance = () => new NightlyImport(setting.locks({ url: setting.url }), async (part) => void loaded.push(part));
  beforeEach(() => loaded.splice(0));

  it('reports when all parts are in, wherever they were loaded', async () => {
    const [one, other] = [instance(), instance()];
    expect(await one.begin('monday', ['a', 'b', 'c'])).toBe(true);
    expect(await other.begin('monday', ['a', 'b', 'c'])).toBe(false);
    const report = one.report('monday').then((text) => `${text} with ${loaded.join()}`);
    await eventually(async () => (await setting.redis.hkeys('import:monday')).some((field) => field.startsWith('waiter:')));
    await Promise.all([one.importPart('monday', 'a'), other.importPart('monday', 'b')]);
    await other.importPart('monday', 'c');
    expect((await report).split(' with ')).toEqual(['complete', expect.stringMatching(/^(a,b|b,a),c$/)]);
    const left = await setting.redis.pttl('import:monday');
    expect(left).toBeGreaterThan(3_500_000);
    expect(await instance().report('monday')).toBe('complete');
    expect(await one.begin('monday', ['d'])).toBe(true);
  });

  it('says what is missing when the latch is lost, and lets the caller go by its signal', async () => {
    const night = instance();
    await night.begin('tuesday', ['a', 'b']);
    const caller = new AbortController();
    const calledOff = night.report('tuesday', caller.signal).catch((error: unknown) => error);
    const report = instance().report('tuesday');
    await eventually(async () => (await setting.redis.hlen('import:tuesday')) === 3 + 1 + 2);
    caller.abort();
    expect(await calledOff).toBeInstanceOf(LockAbortedError);
    await setting.redis.pexpire('import:tuesday', 1);
    expect(await setting.redis.client('KILL', 'TYPE', 'PUBSUB')).toBeGreaterThan(0); // a waiter that reconnects asks at once
    expect(await report).toBe('given up: nothing came in for an hour');
  });
});

it('a leader election runs a relay on one instance, and by the next one as soon as that one resigns', async () => {
  const sent: [string, number][] = [];
  const channel: Channel = { send: async (message, token) => void sent.push([message, token]) };
  const start = (outbox: string[], log: string[]) => {
    const relay = new Relay(channel, outbox);
    setting.finally(() => relay.locks.close());
    watch(relay, (line) => log.push(line));
    return { relay, running: relay.run() };
  };
  const [outbox, log] = [['first'], [] as string[]];
  const a = start(outbox, log);
  await eventually(() => sent.length === 1);
  const b = start(outbox, log);
  expect(await status(a.relay)).toBe('leader');
  expect(await status(b.relay)).toMatch(/^standby of \S+ since \d{4}-\d\d-\d\dT/);
  await a.relay.election.resign();
  await a.relay.locks.close();
  await a.running;
  outbox.push('second');
  await eventually(() => sent.length === 2);
  expect(sent.map(([message]) => message)).toEqual(['first', 'second']);
  const [first, second] = sent.map(([, token]) => token);
  expect(second).toBeGreaterThan(first!);
  expect(log).toEqual([`leads with token ${first}`, 'is not the leader any more', `leads with token ${second}`]);
  await b.relay.election.resign();
  await b.running;
  expect(await status(b.relay)).toBe('nobody leads');
});

let app: TestingModule | undefined;
afterEach(() => app?.close());

async function appWith(...providers: Provider[]): Promise<TestingModule> {
  const store = redisStore({ url: setting.url, requestTimeout: 2_000 });
  const imports = [DistributedLockModule.forRoot({ store, logger: false, defaults: { keyTimeout: 5_000 } })];
  return (app = await Test.createTestingModule({ imports, providers }).compile());
}

/** Deletes the lock's key, as an eviction or a failover would. */
async function loseKey(key: string): Promise<void> {
  await eventually(async () => expect(await setting.redis.del(key)).toBe(1));
}

it('the signal aborts when the lease is lost, and the fencing token refuses the late write', async () => {
  const table = new SqlTable([{ sku: 'apple', units: 7, fence: 0 }]);
  const stock = (await appWith(StocktakeService, { provide: SqlTable, useValue: table })).get(StocktakeService);

  const first = expect(stock.recount('apple')).rejects.toThrow('stale');
  await eventually(() => stock.counting.arrived === 1);
  await loseKey('stocktake-apple-locks');
  await eventually(() => stock.signals[0]!.aborted);
  const second = stock.recount('apple');
  await eventually(() => stock.counting.arrived === 2);
  stock.counting.admit(1);
  await expect(second).resolves.toBe(5);
  const written = { ...table.rows[0] };
  expect(written).toMatchObject({ units: 5, fence: expect.any(Number) });
  stock.counting.open();
  await first;
  expect(table.rows).toEqual([written]);
});

describe('the four kinds of error', () => {
  async function tillWith(work: () => Promise<number>): Promise<TillService> {
    const locks = (await appWith()).get(Locks);
    return new TillService({ reduce: () => locks.using('stock', work, { waitTimeout: 0 }) });
  }

  it('contention, an error of the method itself, and a result', async () => {
    let outcome: () => Promise<number> = async () => 4;
    const till = await tillWith(() => outcome());
    await expect(till.buy('apple')).resolves.toBe('4 left');
    const own = new Error('Sold out');
    outcome = () => Promise.reject(own);
    await expect(till.buy('apple')).rejects.toBe(own);
    await setting.redis.set('stock', 'another process', 'PX', 30_000);
    await expect(till.buy('apple')).resolves.toBe('busy');
  });

  it('a loss, with the result', async () => {
    const gate = new Gate();
    const till = await tillWith(() => gate.pass().then(() => 4));
    const bought = till.buy('apple');
    await loseKey('stock');
    gate.open();
    await expect(bought).resolves.toBe('check: 4 left');
  });

  it('an outage', async () => {
    jest.spyOn(console, 'warn').mockImplementation(); // of the programs above
    const till = await tillWith(async () => 4);
    await setting.server.kill();
    await expect(till.buy('apple')).resolves.toBe('closed');
    await setting.server.restart();
    await eventually(() => setting.redis.ping());
  });
});
