import '../support/virtual-time.js';
import { lastValueFrom, of } from 'rxjs';
import {
  CronLock,
  currentLease,
  DistributedLock,
  LockConfigError,
  Locks,
  LockTimeoutError,
  ReadLock,
  Semaphore,
  WriteLock,
} from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { boot } from './boot.js';
import { classOf } from './class-of.js';
import { KINDS, type Kind } from './kinds.js';
import { Log } from './log.js';

const LONG = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };
const KEY = 'job-locks';

// What a call does under its lock is the same for all decorators, and tested with @DistributedLock. These tests show which lock each of them takes.
describe.each(KINDS)('a method with $name', (kind) => {
  async function bootJob({ lock, blockerOf, driverOf }: Kind) {
    class Job {
      readonly gate = new Gate();

      @lock({ value: 'job', ...LONG })
      async run(body: () => unknown = () => this.gate.pass()) {
        await body();
        return currentLease()?.key;
      }
      @lock({ value: 'job', waitTimeout: 0, onTimeout: 'skip' })
      async attempt(): Promise<string | undefined> {
        return 'ran';
      }
      @lock({ value: 'job', returns: 'observable' })
      watch() {
        return of(currentLease()?.key);
      }
      @lock({ value: 'job' })
      async *rows() {
        yield currentLease()?.key;
      }
    }
    const booted = await boot({ providers: [Job] });
    const isTaken = async () => (await driverOf(booted.store).check({ key: KEY, owner: 'nobody' })).state === 'taken';
    return { ...booted, job: booted.get(Job), isTaken, blocker: blockerOf(booted.locks, KEY) };
  }

  it('keeps out what it excludes while it runs, and no longer', async () => {
    const { job, blocker, isTaken } = await bootJob(kind);
    const call = job.run();
    await eventually(() => job.gate.arrived === 1);
    expect(await isTaken()).toBe(true);
    await expect(blocker.acquire({ waitTimeout: 0 })).rejects.toBeInstanceOf(LockTimeoutError);
    job.gate.open();
    expect([await call, await isTaken()]).toEqual([KEY, false]);
  });

  it('waits for what excludes it, or is skipped', async () => {
    const { job, blocker, waiting } = await bootJob(kind);
    const lease = await blocker.acquire({ keyTimeout: 60_000 });
    const call = job.run();
    await eventually(() => expect(waiting).toEqual([KEY]));
    expect([job.gate.arrived, await job.attempt()]).toEqual([0, undefined]);
    await lease.release();
    job.gate.open();
    await call;
    expect(await job.attempt()).toBe('ran');
  });

  it('enters its own key again, and learns of the loss of its lease', async () => {
    const { job, acquired, store } = await bootJob(kind);
    expect(await job.run(async () => expect(await job.attempt()).toBe('ran'))).toBe(KEY);
    expect(acquired).toEqual([KEY]);
    const lose = () => kind.driverOf(store).release({ key: KEY, owner: currentLease()?.owner ?? '', keepFor: 0 });
    await expect(job.run(lose)).rejects.toMatchObject({ name: 'LockLostError', result: KEY });
  });

  it('may return an Observable or an async iterable, and keeps its name', async () => {
    const { job, isTaken } = await bootJob(kind);
    expect(await lastValueFrom(job.watch())).toBe(KEY);
    for await (const row of job.rows()) expect([row, await isTaken()]).toEqual([KEY, true]);
    expect([await isTaken(), job.watch.name]).toEqual([false, 'watch']);
  });
});

// What policy, permits and count do is tested with the locks (test/contract).
it('hands the options of its lock on: policy, permits and count', async () => {
  const [read, write] = [ReadLock({ policy: 'readers' }), WriteLock({ policy: 'writers' })];
  const Shop = classOf('Shop', { read, write, print: Semaphore({ permits: 3, count: 2 }) });
  const readWriteLock = jest.spyOn(Locks.prototype, 'readWriteLock');
  const semaphore = jest.spyOn(Locks.prototype, 'semaphore');
  const { get } = await boot({ providers: [Shop] });
  await Promise.all([get(Shop).read(), get(Shop).write(), get(Shop).print()]);
  expect(readWriteLock).toHaveBeenCalledWith('Shop.read-locks', { policy: 'readers' });
  expect(readWriteLock).toHaveBeenCalledWith('Shop.write-locks', { policy: 'writers' });
  expect(semaphore).toHaveBeenCalledWith('Shop.print-locks', { permits: 3, count: 2 });
  jest.restoreAllMocks();
});

it('@CronLock runs a tick on one of two apps, skips it on the other, and says so at debug level', async () => {
  class Jobs {
    readonly gate = new Gate();
    readonly runs: unknown[] = [];
    @CronLock({ minHold: 1_500, keyTimeout: 1_000 })
    async report(): Promise<void> {
      this.runs.push(currentLease()?.key);
      await this.gate.pass();
    }
  }
  const logs = [new Log(), new Log()];
  const first = await boot({ providers: [Jobs] }, { logger: logs[0] });
  const second = await boot({ providers: [Jobs] }, { logger: logs[1], store: first.store });
  const jobs = first.get(Jobs);
  const tick = jobs.report();
  await eventually(() => expect(jobs.runs).toEqual(['Jobs.report-locks']));
  expect(await second.get(Jobs).report()).toBeUndefined();
  expect(logs[0]!.details).toContain('Jobs.report runs here.');
  expect(logs[1]!.details).toContainEqual(expect.stringMatching(/^Jobs\.report is skipped: \S+@\S+ has it\.$/));
  expect(second.get(Jobs).runs).toEqual([]);
  jobs.gate.open();
  await tick;
  expect(await first.isTaken('Jobs.report-locks')).toBe(true);
});

describe('decorators that lock, on one method', () => {
  it('take their locks from the uppermost to the lowest', async () => {
    class Shop {
      @Semaphore({ value: 'all', permits: 2 })
      @ReadLock({ value: 'catalogue' })
      @WriteLock({ value: 'stock', key: (sku: string) => sku })
      @DistributedLock({ value: 'order' })
      async buy(sku: string) {
        return `${sku} under ${currentLease()?.key}`;
      }
    }
    const { get, acquired, isTaken } = await boot({ providers: [Shop] });
    expect(await get(Shop).buy('apple')).toBe('apple under order-locks');
    expect(acquired).toEqual(['all-locks', 'catalogue-locks', 'stock-apple-locks', 'order-locks']);
    expect(await isTaken('order-locks')).toBe(false);
    expect([Shop.prototype.buy.name, Shop.prototype.buy.length]).toEqual(['buy', 1]);
  });

  it('may be a write lock above a read lock of one key, but not below', async () => {
    class Shop {
      @WriteLock({ value: 'stock' })
      @ReadLock({ value: 'stock' })
      async right() {
        return 'read under the write lock';
      }
      @ReadLock({ value: 'stock' })
      @WriteLock({ value: 'stock' })
      async wrong() {}
    }
    const shop = (await boot({ providers: [Shop] })).get(Shop);
    expect(await shop.right()).toBe('read under the write lock');
    await expect(shop.wrong()).rejects.toBeInstanceOf(LockConfigError);
  });
});
