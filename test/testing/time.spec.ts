// Hours by the clock of the runner, in milliseconds. What is measured is written to stderr where MEASURE is set.
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CronLock, currentLease, DistributedLock, LockLostError, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { DistributedLockTestingModule, fakeTimers, LockProbe, passTime } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';

expect.extend(lockMatchers);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** Of real time: generous, for a machine that does something else. */
const MOST = 2_000;

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

@Injectable()
class ReportService {
  readonly runs: number[] = [];
  ticks = 0;

  @DistributedLock({ value: 'report' })
  async write(): Promise<string> {
    await sleep(HOUR);
    currentLease()!.assertHeld();
    return 'written';
  }

  @DistributedLock({ value: 'report', waitTimeout: 15 * MINUTE })
  async patient(): Promise<string> {
    return 'at last';
  }

  @DistributedLock({ value: 'endless', retryCount: 0 })
  async endless(): Promise<string> {
    return 'never';
  }

  @DistributedLock({ value: 'limited', maxHold: 5 * MINUTE })
  async limited(): Promise<number> {
    const { signal } = currentLease()!;
    const start = performance.now();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    return performance.now() - start;
  }

  @CronLock({ minHold: 30 * MINUTE, value: 'cron' })
  async tick(): Promise<void> {
    this.ticks++;
  }

  @DistributedLock({ value: 'steps' })
  async steps(): Promise<void> {
    for (let step = 0; step < 100; step++) {
      await sleep(10);
      this.runs.push(performance.now());
    }
  }
}

let app: TestingModule;
let service: ReportService;
let locks: LockProbe;

beforeEach(async () => {
  jest.useFakeTimers(fakeTimers.jest);
  app = await Test.createTestingModule({ imports: [DistributedLockTestingModule.forRoot()], providers: [ReportService] }).compile();
  service = app.get(ReportService);
  locks = app.get(LockProbe);
});
afterEach(async () => {
  await app.close();
  jest.useRealTimers();
});

const realNow = process.hrtime.bigint.bind(process.hrtime);
async function within<T>(most: number, what: string, work: () => Promise<T>): Promise<T> {
  const start = realNow();
  const cpu = process.cpuUsage();
  const result = await work();
  const took = Number(realNow() - start) / 1e6;
  const { user, system } = process.cpuUsage(cpu);
  if (process.env.MEASURE) process.stderr.write(`${what}: ${took.toFixed(1)} ms, ${(user + system) / 1000} ms of the processor\n`);
  expect(took).toBeLessThan(most);
  return result;
}

describe('passTime', () => {
  it.each([1, 2, 3])('lets an hour-long body run under its renewed lease (%s)', async () => {
    await within(MOST, 'a body of an hour', async () => {
      const written = service.write();
      await passTime(HOUR - 1);
      expect(locks.held).toHaveLength(1);
      await passTime(1);
      expect(await written).toBe('written');
    });
    expect(locks.renewals).toBeGreaterThan(HOUR / 10_000);
    expect(locks).toHoldNothing();
    expect(locks.events.filter(({ event }) => event === 'lag' || event === 'lost')).toEqual([]);
  });

  it('lets a caller wait for ten minutes, and get the key when it is released', async () => {
    await within(MOST, 'a wait of ten minutes', async () => {
      await locks.holdElsewhere('report-locks', { for: 10 * MINUTE });
      const got = service.patient();
      await passTime(10 * MINUTE);
      expect(await got).toBe('at last');
    });
    expect(locks).toHaveWaited('report-locks', { atLeast: 10 * MINUTE });
    expect(locks).not.toHaveWaited('report-locks', { atLeast: 10 * MINUTE + 1_000 });
  });

  it('ends a wait that is endless in the app after five seconds', async () => {
    await locks.holdElsewhere('endless-locks');
    const failed = expect(service.endless()).rejects.toBeInstanceOf(LockTimeoutError);
    await passTime(5_000);
    await failed;
  });

  it('brings a maxHold to its end', async () => {
    const took = await within(MOST, 'a maxHold of five minutes', async () => {
      const running = service.limited();
      await passTime(5 * MINUTE);
      return running;
    });
    expect(took).toBeGreaterThanOrEqual(5 * MINUTE);
    expect(took).toBeLessThan(5 * MINUTE + 50);
  });

  it('keeps the key of a cron for its minHold', async () => {
    await within(MOST, 'a cron with a minHold of half an hour', async () => {
      await service.tick();
      await passTime(29 * MINUTE);
      await service.tick();
      expect(service.ticks).toBe(1);
      await passTime(MINUTE);
      await service.tick();
      expect(service.ticks).toBe(2);
    });
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
  });

  it('also works with the default fakes of Jest', async () => {
    jest.useRealTimers();
    jest.useFakeTimers();
    const written = service.write();
    await passTime(HOUR);
    expect(await written).toBe('written');
  });

  it.each(['timeout', 'lost'] as const)('LockLostError: an outage of a minute costs the lease, one of 5 s does not (%s)', async (end) => {
    const written = service.write();
    const outcome = written.catch((error: unknown) => error);
    await passTime(1_000);
    locks.faults.outage(end === 'lost' ? MINUTE : 5_000);
    await passTime(HOUR);
    if (end === 'lost') expect(await outcome).toBeInstanceOf(LockLostError);
    else expect(await outcome).toBe('written');
  });
});
