import { Injectable, Module, type DynamicModule, type Type } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { currentLease, DistributedLock, DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, start } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { lockAmong, place, way, type Order } from './place.js';

const EVERY_SECOND = '* * * * * *';
const LONG = { keyTimeout: 60_000 };
const imports = [ScheduleModule.forRoot()];

/** The key of the lock that the caller is in. */
const key = () => currentLease()?.key;

place('Schedules', '@Cron', (order) => {
  it('runs each tick under its lock, taken once, also after a tick that failed', async () => {
    class Jobs {
      runs: unknown[] = [];
      @lockAmong(order, { ...LONG, waitTimeout: 0 }, Cron(EVERY_SECOND, { name: 'job' }))
      async tick() {
        this.runs.push(key());
        throw new Error('no paper');
      }
    }
    // A tick may be due before the app has booted.
    const store = memoryStore();
    const acquire = jest.spyOn(store.mutex, 'acquire');
    const booted = await boot({ imports, providers: [Jobs] }, { store });
    const { runs } = booted.get(Jobs);
    await eventually(() => runs.length === 2);
    booted.app.get(SchedulerRegistry).deleteCronJob('job');
    expect(runs).toEqual(['Jobs.tick-locks', 'Jobs.tick-locks']);
    expect(acquire.mock.calls.map(([request]) => request.key)).toEqual(runs);
  });

  it('is not started again while it waits for its lock, with waitForCompletion', async () => {
    class Jobs {
      runs = 0;
      seconds = 0;
      @lockAmong(order, { ...LONG, waitTimeout: Infinity, retryInterval: 10 }, Cron(EVERY_SECOND, { waitForCompletion: true }))
      async tick() {
        this.runs++;
      }
      @Cron(EVERY_SECOND)
      async second() {
        this.seconds++;
      }
    }
    const booted = await boot({ imports, providers: [Jobs] });
    const jobs = booted.get(Jobs);
    const lease = await booted.locks.acquire('Jobs.tick-locks', LONG);
    await eventually(() => jobs.seconds === 3);
    expect(booted.waiting).toEqual(['Jobs.tick-locks']);
    expect(jobs.runs).toBe(0);
    await lease.release();
    await eventually(() => jobs.runs > 0);
  });
});

place('Schedules', '@Interval', (order) => {
  it('runs each time under its lock, taken once, and not while the last one runs', async () => {
    class Jobs {
      runs: unknown[] = [];
      inside = 0;
      most = 0;
      @lockAmong(order, { ...LONG, waitTimeout: 0, onTimeout: 'skip' }, Interval('job', 5))
      async tick() {
        this.most = Math.max(this.most, ++this.inside);
        const run = key();
        await new Promise((resolve) => setTimeout(resolve, 20));
        this.runs.push(run);
        this.inside--;
      }
    }
    const booted = await boot({ imports, providers: [Jobs] });
    const jobs = booted.get(Jobs);
    let skipped = 0;
    booted.locks.on('timeout', () => skipped++);
    await eventually(() => jobs.runs.length > 2);
    booted.app.get(SchedulerRegistry).deleteInterval('job');
    await eventually(() => jobs.inside === 0);
    expect(new Set(jobs.runs)).toEqual(new Set(['Jobs.tick-locks']));
    expect(booted.acquired).toEqual(jobs.runs);
    expect(jobs.most).toBe(1);
    expect(skipped).toBeGreaterThan(0);
  });
});

place('Schedules', '@Timeout', (order) => {
  it('runs once, under its lock', async () => {
    class Jobs {
      runs: unknown[] = [];
      @lockAmong(order, LONG, Timeout('job', 20))
      async later() {
        this.runs.push(key());
      }
    }
    const booted = await boot({ imports, providers: [Jobs] });
    expect(booted.app.get(SchedulerRegistry).getTimeouts()).toEqual(['job']);
    expect(booted.get(Jobs).runs).toEqual([]);
    await eventually(() => booted.get(Jobs).runs.length === 1);
    expect(booted.get(Jobs).runs).toEqual(['Jobs.later-locks']);
    expect(booted.acquired).toEqual(['Jobs.later-locks']);
  });

  it('waits for a lock that another has', async () => {
    class Jobs {
      runs: unknown[] = [];
      @lockAmong(order, { ...LONG, waitTimeout: Infinity, retryInterval: 10 }, Timeout(20))
      async later() {
        this.runs.push(key());
      }
    }
    const booted = await boot({ imports, providers: [Jobs] });
    const lease = await booted.locks.acquire('Jobs.later-locks', LONG);
    await eventually(() => booted.waiting.length > 0);
    expect(booted.get(Jobs).runs).toEqual([]);
    await lease.release();
    await eventually(() => booted.get(Jobs).runs.length === 1);
  });
});

way('Schedules', 'any order of imports', () => {
  /** A feature module with one job of each kind. */
  function featureOf(order: Order) {
    @Injectable()
    class Jobs {
      runs = new Set<unknown>();
      @lockAmong(order, LONG, Cron(EVERY_SECOND))
      async cron() {
        this.runs.add(key());
      }
      @lockAmong(order, LONG, Interval(50))
      async interval() {
        this.runs.add(key());
      }
      @lockAmong(order, LONG, Timeout(50))
      async timeout() {
        this.runs.add(key());
      }
    }
    @Module({ providers: [Jobs] })
    class JobsModule {}
    return { Jobs, JobsModule };
  }
  const locking = () => DistributedLockModule.forRoot({ store: memoryStore(), logger: false });
  type Parts = (feature: Type, lock: DynamicModule, schedule: DynamicModule) => (Type | DynamicModule)[];
  const orders: [string, Parts][] = [
    ['the feature, the locks, the scheduler', (feature, lock, schedule) => [feature, lock, schedule]],
    ['the feature, the scheduler, the locks', (feature, lock, schedule) => [feature, schedule, lock]],
    ['the locks, the feature, the scheduler', (feature, lock, schedule) => [lock, feature, schedule]],
    ['the locks, the scheduler, the feature', (feature, lock, schedule) => [lock, schedule, feature]],
    ['the scheduler, the feature, the locks', (feature, lock, schedule) => [schedule, feature, lock]],
    ['the scheduler, the locks, the feature', (feature, lock, schedule) => [schedule, lock, feature]],
  ];

  it.each(orders)('locks every job with %s imported in this order', async (_name, parts) => {
    const prove = async (order: Order) => {
      const { Jobs, JobsModule } = featureOf(order);
      const app = await start(Test.createTestingModule({ imports: parts(JobsModule, locking(), ScheduleModule.forRoot()) }));
      const acquired = new Set<string>();
      app.get(Locks).on('acquired', ({ key }) => acquired.add(key));
      const { runs } = app.get(Jobs);
      await eventually(() => runs.size === 3);
      expect(runs).toEqual(new Set(['Jobs.timeout-locks', 'Jobs.interval-locks', 'Jobs.cron-locks']));
      expect(acquired).toEqual(runs);
    };
    await Promise.all([prove('above'), prove('below')]);
  });
});

way('Schedules', 'a job that other code adds to the SchedulerRegistry', () => {
  it('is locked, since the method itself is', async () => {
    class Jobs {
      runs: unknown[] = [];
      @DistributedLock(LONG)
      async tick() {
        this.runs.push(key());
      }
    }
    const booted = await boot({ imports, providers: [Jobs] });
    const jobs = booted.get(Jobs);
    booted.app.get(SchedulerRegistry).addTimeout(
      'dynamic',
      setTimeout(() => void jobs.tick(), 5),
    );
    await eventually(() => jobs.runs.length === 1);
    expect(jobs.runs).toEqual(['Jobs.tick-locks']);
    expect(booted.acquired).toEqual(jobs.runs);
  });
});
