import { Injectable, Module, type DynamicModule, type Type } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { DistributedLock, DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, start } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { key, lockAmong, place, way, type Order } from './place.js';

const EVERY_SECOND = '* * * * * *';
const LONG = { keyTimeout: 60_000 };
const imports = [ScheduleModule.forRoot()];

place('Schedules', '@Cron', (order) => {
  it('runs each tick under its lock, taken once, also after one that failed, and never beside one that waits, with waitForCompletion', async () => {
    class Jobs {
      runs: unknown[] = [];
      patientRuns = 0;
      @lockAmong(order, { ...LONG, waitTimeout: 0 }, Cron(EVERY_SECOND, { name: 'job' }))
      async tick() {
        this.runs.push(key());
        throw new Error('no paper');
      }
      @lockAmong(order, { ...LONG, waitTimeout: Infinity, retryInterval: 10 }, Cron(EVERY_SECOND, { waitForCompletion: true }))
      async patient() {
        this.patientRuns++;
      }
    }
    const store = memoryStore();
    const lease = await new Locks(store).acquire('Jobs.patient-locks', LONG);
    // A tick may be due before the app has booted.
    const acquire = jest.spyOn(store.mutex, 'acquire');
    const booted = await boot({ imports, providers: [Jobs] }, { store });
    const jobs = booted.get(Jobs);
    await eventually(() => jobs.runs.length === 3);
    booted.app.get(SchedulerRegistry).deleteCronJob('job');
    expect(jobs.runs).toEqual(Array(3).fill('Jobs.tick-locks'));
    expect(acquire.mock.calls.map(([request]) => request.key).filter((taken) => taken === 'Jobs.tick-locks')).toEqual(jobs.runs);
    await eventually(() => expect([booted.waiting, jobs.patientRuns]).toEqual([['Jobs.patient-locks'], 0]));
    await lease.release();
    await eventually(() => jobs.patientRuns > 0);
  });

  it('is locked on what a factory made', async () => {
    class Jobs {
      runs: unknown[] = [];
      @lockAmong(order, LONG, Cron('0 0 0 29 2 *', { name: 'rare' }))
      async tick() {
        this.runs.push(key());
      }
    }
    const { app, get } = await boot({ imports, providers: [{ provide: Jobs, useFactory: () => new Jobs() }] });
    await app.get(SchedulerRegistry).getCronJob('rare').fireOnTick();
    await eventually(() => expect(get(Jobs).runs).toEqual(['Jobs.tick-locks']));
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
    await eventually(() => jobs.runs.length > 2 && skipped > 0);
    booted.app.get(SchedulerRegistry).deleteInterval('job');
    await eventually(() => jobs.inside === 0);
    expect(new Set(jobs.runs)).toEqual(new Set(['Jobs.tick-locks']));
    expect([booted.acquired, jobs.most]).toEqual([jobs.runs, 1]);
  });
});

place('Schedules', '@Timeout', (order) => {
  it('runs once, under its lock, for which it waits', async () => {
    class Jobs {
      runs: unknown[] = [];
      @lockAmong(order, { ...LONG, waitTimeout: Infinity, retryInterval: 10 }, Timeout('job', 20))
      async later() {
        this.runs.push(key());
      }
    }
    const booted = await boot({ imports, providers: [Jobs] });
    const { runs } = booted.get(Jobs);
    expect(booted.app.get(SchedulerRegistry).getTimeouts()).toEqual(['job']);
    const lease = await booted.locks.acquire('Jobs.later-locks', LONG);
    await eventually(() => booted.waiting.length > 0);
    expect(runs).toEqual([]);
    await lease.release();
    await eventually(() => expect(runs).toEqual(['Jobs.later-locks']));
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
  type Parts = (feature: Type, lock: DynamicModule, schedule: DynamicModule) => (Type | DynamicModule)[];
  const orders: Parts[] = [
    (feature, lock, schedule) => [feature, lock, schedule],
    (feature, lock, schedule) => [feature, schedule, lock],
    (feature, lock, schedule) => [lock, feature, schedule],
    (feature, lock, schedule) => [lock, schedule, feature],
    (feature, lock, schedule) => [schedule, feature, lock],
    (feature, lock, schedule) => [schedule, lock, feature],
  ];

  it.each(['above', 'below'] as const)('locks every job, the lock %s', async (order) => {
    const prove = async (parts: Parts) => {
      const { Jobs, JobsModule } = featureOf(order);
      const locking = DistributedLockModule.forRoot({ store: memoryStore(), logger: false });
      const app = await start(Test.createTestingModule({ imports: parts(JobsModule, locking, ScheduleModule.forRoot()) }));
      const acquired = new Set<string>();
      app.get(Locks).on('acquired', (lease) => acquired.add(lease.key));
      const { runs } = app.get(Jobs);
      await eventually(() => runs.size === 3);
      expect(runs).toEqual(new Set(['Jobs.timeout-locks', 'Jobs.interval-locks', 'Jobs.cron-locks']));
      await eventually(() => expect(acquired).toEqual(runs));
    };
    await Promise.all(orders.map(prove));
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
    const { app, get } = await boot({ imports, providers: [Jobs] });
    const timer = setTimeout(() => void get(Jobs).tick(), 5);
    app.get(SchedulerRegistry).addTimeout('dynamic', timer);
    await eventually(() => expect(get(Jobs).runs).toEqual(['Jobs.tick-locks']));
  });
});
