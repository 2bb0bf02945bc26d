// The test kit, in a user's test: one file for Jest and Vitest, CommonJS and ESM.
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CronLock, currentLease, DistributedLock, DistributedLockModule, LockLostError, LockTimeoutError } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { DistributedLockTestingModule, fakeTimers, lockMatchers, LockProbe, passTime } from 'nestjs-distributed-lock/testing';

const HOUR = 3_600_000;
const KEY = 'stock-apple-locks';
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

@Injectable()
class StockService {
  ticks = 0;

  @DistributedLock<StockService['reduce']>({ value: 'stock', key: (sku) => sku, waitTimeout: 900_000 })
  async reduce(_sku: string): Promise<number | null> {
    currentLease()!.assertHeld();
    return currentLease()!.fencingToken;
  }

  @DistributedLock({ value: 'report' })
  async report(): Promise<string> {
    await sleep(HOUR);
    return 'reported';
  }

  @DistributedLock({ value: 'limited', maxHold: 60_000 })
  async limited(): Promise<void> {
    const { signal } = currentLease()!;
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  }

  @CronLock({ value: 'tick', minHold: 60_000 })
  async tick(): Promise<void> {
    this.ticks++;
  }
}

describe('the test kit', () => {
  let module: TestingModule;
  let stock: StockService;
  let locks: any;
  let useReal: () => void;

  beforeEach(async () => {
    const { vi } = globalThis as any;
    if (vi) vi.useFakeTimers(fakeTimers.vitest);
    const runner = vi ?? (typeof jest === 'undefined' ? (await import('@jest/globals')).jest : jest);
    if (!vi) runner.useFakeTimers(fakeTimers.jest);
    useReal = () => runner.useRealTimers();
    expect.extend(lockMatchers as any);
    module = await Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot()], providers: [StockService] }).compile();
    stock = module.get(StockService);
    locks = module.get(LockProbe);
  });
  afterEach(async () => {
    await module.close();
    useReal();
  });
  const expectLocks = () => expect(locks) as any;

  it('lets an hour pass under a renewed lease', async () => {
    const [outcome] = await Promise.all([stock.report(), passTime(HOUR)]);
    expect(outcome).toBe('reported');
    expectLocks().toHaveLocked('report-locks', { times: 1, by: 'StockService.report' });
    expectLocks().not.toHaveLost('report-locks');
    expectLocks().toHoldNothing();
  });

  it('lets a caller wait for ten minutes', async () => {
    await locks.holdElsewhere(KEY, { for: 600_000 });
    await Promise.all([stock.reduce('apple'), passTime(600_000)]);
    expectLocks().toHaveWaited(locks.keyOf(StockService, 'reduce', 'apple'), { atLeast: 600_000 });
  });

  it('brings a maxHold and a minHold to their ends', async () => {
    await Promise.all([stock.limited(), passTime(60_000)]);
    await stock.tick();
    await passTime(59_000);
    await stock.tick();
    expect(stock.ticks).toBe(1);
    await passTime(1_000);
    await stock.tick();
    expect(stock.ticks).toBe(2);
  });

  it('makes faults happen', async () => {
    const outcome = stock.report().catch((error: unknown) => error);
    await passTime(10_000);
    await locks.faults.lose('report-locks');
    await passTime(HOUR);
    expect(await outcome).toBeInstanceOf(LockLostError);
    locks.faults.timeOut(KEY);
    const refused = expect(stock.reduce('apple')).rejects.toBeInstanceOf(LockTimeoutError);
    await Promise.all([refused, passTime(900_000)]);
    expectLocks().toHaveTimedOut(KEY);
  });

  it('sees the order of two locks', async () => {
    await stock.reduce('apple');
    await stock.reduce('pear');
    expectLocks().toHaveLockedInOrder([KEY, 'stock-pear-locks']);
    expectLocks().not.toHaveOverlapped(/^stock-/);
  });

  it('replaces the store of a whole app', async () => {
    await module.close();
    const store = redisStore({ url: 'redis://localhost:1' });
    const app = Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ store, namespace: 'app:' })],
      providers: [StockService],
    });
    module = await DistributedLockTestingModule.replace(app).compile();
    locks = module.get(LockProbe);
    await module.get(StockService).reduce('apple');
    expectLocks().toHaveLocked(`app:${KEY}`);
  });
});
