import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { boot, type Booted } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { lockAmong, place, way } from './place.js';
import { DigestJobs, Outbox, SweepJobs } from './schedule-report.js';

const imports = [ScheduleModule.forRoot()];

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const onRedis = (providers: never[]) => boot({ imports, providers }, { store: redisStore({ options: redis.connection }) });

/** One app's call of the job, as its clock would make it; resolves when it was run or skipped. */
async function fire({ app, locks }: Booted, name: string): Promise<'ran' | 'skipped'> {
  const outcome = new Promise<'ran' | 'skipped'>((resolve) => {
    locks.on('released', () => resolve('ran'));
    locks.on('timeout', () => resolve('skipped'));
  });
  await app.get(SchedulerRegistry).getCronJob(name).fireOnTick();
  return outcome;
}

place('Schedules', '@Cron in two apps on one Redis', (order) => {
  it('runs each tick once in both together, never at the same time', async () => {
    const runs: { app: string; second: number; token: number }[] = [];
    let inside = 0;
    let most = 0;
    const jobsOf = (app: string) => {
      class Jobs {
        @lockAmong(
          order,
          { value: `tick-${order}`, onTimeout: 'skip', retryCount: 1, minHold: 500, keyTimeout: 60_000 },
          Cron('* * * * * *'),
        )
        async tick() {
          most = Math.max(most, ++inside);
          runs.push({ app, second: Math.floor(Date.now() / 1_000), token: currentLease()!.fencingToken! });
          await new Promise((resolve) => setImmediate(resolve));
          inside--;
        }
      }
      return Jobs;
    };
    const apps = await Promise.all(['one', 'two'].map((name) => onRedis([jobsOf(name) as never])));
    let skipped = 0;
    for (const { locks } of apps) locks.on('timeout', () => skipped++);
    await eventually(() => runs.length >= 3 && skipped >= 3);
    expect(runs.map(({ second }) => second)).toEqual([...new Set(runs.map(({ second }) => second))]);
    expect(runs.map(({ token }) => token)).toEqual(runs.map(({ token }) => token).toSorted((a, b) => a - b));
    expect(apps.flatMap(({ acquired }) => acquired)).toHaveLength(runs.length);
    expect(most).toBe(1);
  });
});

way('Schedules', 'minHold against clocks that differ', () => {
  it('keeps a quick job from being run again by an app whose clock is behind', async () => {
    const [first, second] = [await onRedis([DigestJobs, Outbox] as never[]), await onRedis([DigestJobs, Outbox] as never[])];
    expect(await fire(first, 'digest')).toBe('ran');
    expect(await fire(second, 'digest')).toBe('skipped');
    expect(first.get(Outbox).sent).toEqual(['digest under DigestJobs.sendDigest-locks']);
    expect(second.get(Outbox).sent).toEqual([]);
  });

  it('is kept also when the app that ran the job has closed', async () => {
    class Jobs {
      runs = 0;
      @Cron('0 0 0 29 2 *', { name: 'rare' })
      @DistributedLock({ value: 'rare', onTimeout: 'skip', retryCount: 1, minHold: 60_000 })
      async rare() {
        this.runs++;
      }
    }
    const first = await onRedis([Jobs as never]);
    expect(await fire(first, 'rare')).toBe('ran');
    await first.app.close();
    const second = await onRedis([Jobs as never]);
    expect(await fire(second, 'rare')).toBe('skipped');
    expect(second.get(Jobs).runs).toBe(0);
  });

  it('lets the next tick run when it is over', async () => {
    class Jobs {
      runs = 0;
      @Cron('0 0 0 29 2 *', { name: 'brief' })
      @DistributedLock({ value: 'brief', onTimeout: 'skip', retryCount: 1, minHold: 50 })
      async brief() {
        this.runs++;
      }
    }
    const [first, second] = [await onRedis([Jobs as never]), await onRedis([Jobs as never])];
    await fire(first, 'brief');
    await eventually(async () => (await fire(second, 'brief')) === 'ran');
    expect(second.get(Jobs).runs).toBe(1);
  });

  it('holds for an interval too', async () => {
    const [first, second] = [await onRedis([SweepJobs, Outbox] as never[]), await onRedis([SweepJobs, Outbox] as never[])];
    expect(first.app.get(SchedulerRegistry).getIntervals()).toEqual(['sweep']);
    await Promise.all([first.get(SweepJobs).sweep(), second.get(SweepJobs).sweep()]);
    expect([...first.get(Outbox).sent, ...second.get(Outbox).sent]).toEqual(['sweep under SweepJobs.sweep-locks']);
  });
});
