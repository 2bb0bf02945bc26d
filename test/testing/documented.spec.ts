import { Test, type TestingModule } from '@nestjs/testing';
import { DistributedLockTestingModule, fakeTimers, LockProbe, passTime } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { tests } from './documented.js';
import { broken, Database, Shelf, StockService } from './stock.js';

let closing: TestingModule | undefined;
afterEach(async () => {
  const closed = closing?.close();
  if ('clock' in setTimeout) await passTime(20_000);
  await closed;
  jest.useRealTimers();
});

async function settingOf(type: typeof StockService) {
  jest.useFakeTimers(fakeTimers.jest);
  expect.extend(lockMatchers);
  const providers = [{ provide: StockService, useClass: type }, Shelf, Database];
  const module = await Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot()], providers }).compile();
  closing = module;
  return { stock: module.get(StockService), shelf: module.get(Shelf), database: module.get(Database), locks: module.get(LockProbe) };
}

/** A test that hangs is red, too. The service's own rejections are followed by the test that fails before it awaits them. */
async function failureOf(test: () => Promise<void>): Promise<unknown> {
  const hung = new Promise<string>((resolve) => setImmediate(resolve, 'hung'));
  return test().then(
    () => undefined,
    async (error: unknown) => error ?? hung,
  );
}

describe.each(Object.entries(tests))('the test "%s"', (name, test) => {
  it('is green for a service that does right', async () => {
    await test(await settingOf(StockService));
  });

  it.each(Object.entries(broken).filter(([, [, by]]) => by === name))('is red for one that %s', async (_what, [type]) => {
    const setting = await settingOf(type);
    expect(await failureOf(() => test(setting))).toHaveProperty('name', expect.stringMatching(/Error$/));
  });
});

it('there is a test for each of them, and a broken service for each test', () => {
  const finders = Object.values(broken).map(([, by]) => by);
  expect(new Set(finders)).toEqual(new Set(Object.keys(tests)));
  expect(Object.keys(broken).length).toBeGreaterThanOrEqual(12);
});

describe('the page begins with', () => {
  it('a module, a probe and matchers', async () => {
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
});
