// passTime() under the fake timers of the runner, and the tests that docs/testing.md shows, which use it.
import { Test, type TestingModule } from '@nestjs/testing';
import { Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { readdirSync } from 'node:fs';
import { DistributedLockTestingModule, fakeTimers, LockProbe, passTime } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { tests } from './documented.js';
import { HOUR, MINUTE, ReportService } from './report.js';
import { broken, Database, Shelf, StockService } from './stock.js';

expect.extend(lockMatchers);

let closing: TestingModule | undefined;
async function open(providers: Parameters<typeof Test.createTestingModule>[0]['providers']) {
  jest.useFakeTimers(fakeTimers.jest);
  closing = await Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot()], providers }).compile();
  return { module: closing, locks: closing.get(LockProbe) };
}
afterEach(async () => {
  const closed = closing?.close();
  if ('clock' in setTimeout) await passTime(20_000);
  await closed;
  closing = undefined;
  jest.useRealTimers();
});

describe('passTime', () => {
  let service: ReportService;
  let locks: LockProbe;
  beforeEach(async () => {
    const opened = await open([ReportService]);
    ({ locks } = opened);
    service = opened.module.get(ReportService);
  });

  it('lets an hour-long body run under its renewed lease', async () => {
    const written = service.write();
    await passTime(HOUR - 1);
    expect(locks.held).toHaveLength(1);
    await passTime(1);
    expect(await written).toBe('written');
    expect(locks.renewals).toBeGreaterThan(HOUR / 10_000);
    expect(locks).toHoldNothing();
    expect(locks.events.filter(({ event }) => event === 'lag' || event === 'lost')).toEqual([]);
  });

  it('ends a wait that is endless in the app after five seconds', async () => {
    await locks.holdElsewhere('endless-locks');
    const failed = expect(service.endless()).rejects.toBeInstanceOf(LockTimeoutError);
    await passTime(5_000);
    await failed;
  });

  it('brings a maxHold to its end', async () => {
    const end = performance.now() + 5 * MINUTE;
    const running = service.limited();
    await passTime(5 * MINUTE - 1);
    expect(locks.held).toHaveLength(1);
    await passTime(1_000);
    expect(await running).toBeGreaterThanOrEqual(end);
  });

  it('lets promises settle after each timer: a hundred steps of 10 ms are a second', async () => {
    const start = performance.now();
    const running = service.steps();
    await passTime(1_000);
    await running;
    expect(service.runs.map((at) => Math.round(at - start))).toEqual(Array.from({ length: 100 }, (_, index) => 10 * (index + 1)));
  });

  it('takes no step for a stall, and sees one that comes after it', async () => {
    const running = service.write();
    await passTime(HOUR / 2);
    expect(locks.events.some(({ event }) => event === 'lag')).toBe(false);
    await locks.faults.stall(5_000);
    await passTime(1_000);
    expect(locks.events.find(({ event }) => event === 'lag')).toMatchObject({ lag: expect.closeTo(5_000, -3) });
    await passTime(HOUR);
    expect(await running).toBe('written');
  });

  it('says how to install fake timers where there are none', async () => {
    jest.useRealTimers();
    await expect(passTime(10)).rejects.toThrow('passTime() needs fake timers. In Jest: jest.useFakeTimers(fakeTimers.jest)');
  });

  it.each([-1, Infinity, NaN])('refuses %s milliseconds', async (ms) => {
    await expect(passTime(ms)).rejects.toThrow(RangeError);
  });

  it('refuses to go on with a lease that was taken before the fake timers were installed', async () => {
    jest.useRealTimers();
    const before = new Locks(memoryStore(), { logger: false });
    const probe = new LockProbe(before);
    await before.acquire('early');
    jest.useFakeTimers(fakeTimers.jest);
    await expect(passTime(10)).rejects.toThrow('"early" was taken before the fake timers were installed');
    probe.onApplicationShutdown();
    await before.close();
  });

  it('refuses fake timers that leave performance real: leases would never end', async () => {
    jest.useRealTimers();
    jest.useFakeTimers({ doNotFake: [...fakeTimers.jest.doNotFake, 'performance'] });
    await expect(passTime(10)).rejects.toThrow('leave "performance" real');
    jest.useRealTimers();
  });

  it('also works with the default fakes of Jest', async () => {
    jest.useRealTimers();
    jest.useFakeTimers();
    const written = service.write();
    await passTime(HOUR);
    expect(await written).toBe('written');
  });

  const inRealTime = readdirSync('lib/stores').filter((name) => !/\.md$|^(records|memory)$/.test(name));
  it.each(inRealTime)('warns, once, of a store that answers in real time: %s', async (name) => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    const remote = new Locks({ ...memoryStore(), name }, { logger: false });
    const probe = new LockProbe(remote);
    await passTime(1);
    await passTime(1);
    expect(warn.mock.calls).toEqual([[expect.stringContaining(`the "${name}" store answers in real time`)]]);
    warn.mockRestore();
    probe.onApplicationShutdown();
    await remote.close();
  });
});

describe.each(Object.entries(tests))('the documented test "%s"', (name, test) => {
  async function settingOf(type: typeof StockService) {
    const { module, locks } = await open([{ provide: StockService, useClass: type }, Shelf, Database]);
    return { stock: module.get(StockService), shelf: module.get(Shelf), database: module.get(Database), locks };
  }

  it('is green for a service that does right', async () => {
    await test(await settingOf(StockService));
  });

  it.each(Object.entries(broken).filter(([, [, by]]) => by === name))('is red for one that %s', async (_what, [type]) => {
    const setting = await settingOf(type);
    await expect(test(setting)).rejects.toHaveProperty('name', expect.stringMatching(/Error$/));
  });
});

it('the documented tests: there is one for each defect, and a defect for each test', () => {
  const finders = Object.values(broken).map(([, by]) => by);
  expect(new Set(finders)).toEqual(new Set(Object.keys(tests)));
  expect(Object.keys(broken).length).toBeGreaterThanOrEqual(12);
});

it('the page begins with a module, a probe and matchers', async () => {
  const providers = [StockService, Shelf, Database];
  // #region testing-module
  expect.extend(lockMatchers);
  jest.useFakeTimers(fakeTimers.jest);
  const module = await Test.createTestingModule({
    imports: [DistributedLockTestingModule.forRoot()],
    providers,
  }).compile();
  const locks = module.get(LockProbe);
  const stock = module.get(StockService);

  expect(await stock.reduce('apple')).toBe(9);
  expect(locks).toHaveLocked(locks.keyOf(StockService, 'reduce', 'apple'), { times: 1, by: 'StockService.reduce' });
  await module.close();
  // #endregion
});
