import '../support/virtual-time.js';
import { Injectable, Module } from '@nestjs/common';
import { Cron, Interval, ScheduleModule, SchedulerRegistry, Timeout } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { DistributedLockModule, Locks, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, start } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { pause } from '../support/time.js';
import { passTime } from '../support/virtual-time.js';
import { key, lockAmong, aboveAndBelow, way, type Order } from './ways.js';

const EVERY_SECOND = '* * * * * *';
const LONG = { keyTimeout: 60_000 };
const imports = [ScheduleModule.forRoot()];

/** A class with one job, which is locked so, notes its key and does the rest. */
function jobsWith(order: Order, options: DistributedLockOptions, schedule: MethodDecorator, rest?: () => Promise<void>) {
  class Jobs {
    runs: unknown[] = [];
    @lockAmong(order, { ...LONG, ...options }, schedule)
    async tick() {
      this.runs.push(key());
      await rest?.();
    }
  }
  return Jobs;
}

aboveAndBelow('Schedules', '@Cron', (order) => {
  it('runs each tick under its lock, taken once, also after one that failed and on what a factory made', async () => {
    const fail = () => Promise.reject(new Error('no paper'));
    const Jobs = jobsWith(order, { waitTimeout: 0 }, Cron(EVERY_SECOND, { name: 'job' }), fail);
    const { app, get, acquired } = await boot({ imports, providers: [{ provide: Jobs, useFactory: () => new Jobs() }] });
    await passTime(3_000);
    app.get(SchedulerRegistry).deleteCronJob('job');
    await passTime(3_000);
    expect(get(Jobs).runs).toEqual(Array(3).fill('Jobs.tick-locks'));
    expect(acquired).toEqual(get(Jobs).runs);
  });

  it('runs no tick beside one that waits, with waitForCompletion', async () => {
    const Jobs = jobsWith(order, { waitTimeout: Infinity }, Cron(EVERY_SECOND, { waitForCompletion: true }));
    const store = memoryStore();
    const lease = await new Locks(store).acquire('Jobs.tick-locks', LONG);
    const { get, waiting } = await boot({ imports, providers: [Jobs] }, { store });
    await passTime(3_000);
    expect([waiting, get(Jobs).runs]).toEqual([['Jobs.tick-locks'], []]);
    await lease.release();
    await eventually(() => get(Jobs).runs.length > 0);
  });
});

aboveAndBelow('Schedules', '@Interval', (order) => {
  it('runs each time under its lock, taken once, and not while the last one runs', async () => {
    const Jobs = jobsWith(order, { waitTimeout: 0, onTimeout: 'skip' }, Interval('job', 10), () => pause(25));
    const { app, get, locks, acquired } = await boot({ imports, providers: [Jobs] });
    let skipped = 0;
    locks.on('timeout', () => skipped++);
    await passTime(85);
    app.get(SchedulerRegistry).deleteInterval('job');
    await passTime(100);
    expect(get(Jobs).runs).toEqual(Array(3).fill('Jobs.tick-locks'));
    expect([acquired, skipped]).toEqual([get(Jobs).runs, 5]);
  });
});

aboveAndBelow('Schedules', '@Timeout', (order) => {
  it('runs once, under its lock, for which it waits', async () => {
    const Jobs = jobsWith(order, { waitTimeout: Infinity }, Timeout('job', 20));
    const { app, get, locks, waiting } = await boot({ imports, providers: [Jobs] });
    const { runs } = get(Jobs);
    expect(app.get(SchedulerRegistry).getTimeouts()).toEqual(['job']);
    const lease = await locks.acquire('Jobs.tick-locks', LONG);
    await eventually(() => waiting.length > 0);
    expect(runs).toEqual([]);
    await lease.release();
    await passTime(1_000);
    expect(runs).toEqual(['Jobs.tick-locks']);
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
  const orders = ['012', '021', '102', '120', '201', '210'];

  it.each((['above', 'below'] as const).flatMap((order) => orders.map((parts) => [parts, order] as const)))(
    'locks every job in order %s, the lock %s',
    async (parts, order) => {
      const { Jobs, JobsModule } = featureOf(order);
      const modules = [JobsModule, DistributedLockModule.forRoot({ store: memoryStore(), logger: false }), ScheduleModule.forRoot()];
      const app = await start(Test.createTestingModule({ imports: [...parts].map((part) => modules[Number(part)]!) }));
      await passTime(1_000);
      expect(app.get(Jobs).runs).toEqual(new Set(['Jobs.timeout-locks', 'Jobs.interval-locks', 'Jobs.cron-locks']));
    },
  );
});
