import { Cron, Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import type { Redis } from 'ioredis';
import { currentLease, LeaderOnly } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { boot, type Booted } from '../nest/boot.js';
import { forkChild } from '../support/child.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { among, lockAmong, place, way } from './place.js';
import { BillingJobs, ImportJobs } from './schedule-leader.js';
import { DigestJobs, Outbox, SweepJobs } from './schedule-report.js';

const imports = [ScheduleModule.forRoot()];
const NEVER = '0 0 0 29 2 *';

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
  redis = server.client();
});
beforeEach(() => redis.flushall());
afterAll(() => server.stop());

const onRedis = (...providers: unknown[]) =>
  boot({ imports, providers: providers as never[] }, { store: redisStore({ options: server.connection }) });

/** How many stand by behind a leader. */
const standbys = (name: string) => redis.zcard(`{${name}-leader}:queue`);

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
        @lockAmong(order, { value: 'tick', onTimeout: 'skip', retryCount: 1, minHold: 500, keyTimeout: 60_000 }, Cron('* * * * * *'))
        async tick() {
          most = Math.max(most, ++inside);
          runs.push({ app, second: Math.floor(Date.now() / 1_000), token: currentLease()!.fencingToken! });
          await new Promise((resolve) => setImmediate(resolve));
          inside--;
        }
      }
      return Jobs;
    };
    const apps = await Promise.all(['one', 'two'].map((name) => onRedis(jobsOf(name))));
    let skipped = 0;
    for (const { locks } of apps) locks.on('timeout', () => skipped++);
    await eventually(() => runs.length >= 2 && skipped >= 2);
    expect(runs.map(({ second }) => second)).toEqual([...new Set(runs.map(({ second }) => second))]);
    expect(runs.map(({ token }) => token)).toEqual(runs.map(({ token }) => token).toSorted((a, b) => a - b));
    expect(apps.flatMap(({ acquired }) => acquired)).toHaveLength(runs.length);
    expect(most).toBe(1);
  });
});

way('Schedules', 'minHold against clocks that differ', () => {
  it('keeps a quick job from being run again by an app whose clock is behind', async () => {
    const [first, second] = [await onRedis(DigestJobs, Outbox), await onRedis(DigestJobs, Outbox)];
    expect(await fire(first, 'digest')).toBe('ran');
    expect(await fire(second, 'digest')).toBe('skipped');
    await first.app.close(); // the key is kept for all that
    expect(await fire(second, 'digest')).toBe('skipped');
    expect(first.get(Outbox).sent).toEqual(['digest under DigestJobs.sendDigest-locks']);
    expect(second.get(Outbox).sent).toEqual([]);
  });

  it('holds for an interval too', async () => {
    const [first, second] = [await onRedis(SweepJobs, Outbox), await onRedis(SweepJobs, Outbox)];
    expect(first.app.get(SchedulerRegistry).getIntervals()).toEqual(['sweep']);
    await Promise.all([first.get(SweepJobs).sweep(), second.get(SweepJobs).sweep()]);
    expect([...first.get(Outbox).sent, ...second.get(Outbox).sent]).toEqual(['sweep under SweepJobs.sweep-locks']);
  });
});

place('Schedules', '@Cron with @LeaderOnly in two apps on one Redis', (order) => {
  it('runs on the leader only, on the other app as soon as the leader has closed', async () => {
    class Jobs {
      tokens: unknown[] = [];
      @among(order, LeaderOnly(`cron-${order}`, { keyTimeout: 60_000 }), Cron(NEVER, { name: 'tick' }))
      async tick() {
        this.tokens.push(currentLease()?.fencingToken);
      }
    }
    const tick = ({ app }: Booted) => app.get(SchedulerRegistry).getCronJob('tick').fireOnTick();
    const first = await onRedis(Jobs);
    await eventually(async () => (await tick(first), first.get(Jobs).tokens.length > 0));
    const second = await onRedis(Jobs);
    await eventually(async () => (await standbys(`cron-${order}`)) === 1);
    const { tokens } = second.get(Jobs);
    await Promise.all([tick(first), tick(second)]);
    expect(tokens).toEqual([]);
    await first.app.close();
    await eventually(async () => (await tick(second), tokens.length > 0));
    expect(new Set(first.get(Jobs).tokens).size).toBe(1);
    expect(tokens[0]).toBeGreaterThan(first.get(Jobs).tokens[0] as number);
  });
});

place('Schedules', '@Interval with @LeaderOnly', (order) => {
  it('runs on the leader only', async () => {
    const runs: string[] = [];
    const jobsOf = (app: string) => {
      class Jobs {
        ticks = 0;
        @among(order, LeaderOnly(`interval-${order}`, { keyTimeout: 60_000 }), Interval(5))
        async tick() {
          runs.push(app);
        }
        @Interval(5)
        async count() {
          this.ticks++;
        }
      }
      return Jobs;
    };
    await onRedis(jobsOf('first'));
    await eventually(() => runs.length > 0);
    const Second = jobsOf('second');
    const second = await onRedis(Second);
    await eventually(() => second.get(Second).ticks > 20);
    expect(new Set(runs)).toEqual(new Set(['first']));
  });
});

way('Schedules', 'the leader is killed: another instance takes over within keyTimeout and a second', () => {
  const KEY_TIMEOUT = 1_000;
  const SLACK = 1_500; // of a busy machine
  const ticks = async () => (await redis.lrange('ticks', 0, -1)).map((line) => JSON.parse(line) as { pid: number; token: number });

  it('twice, with kill -9', async () => {
    const args = [JSON.stringify({ connection: server.connection, keyTimeout: KEY_TIMEOUT })];
    const children = await Promise.all(Array.from({ length: 3 }, () => forkChild('test/integrations/leader.child.ts', { args })));
    try {
      await Promise.all(children.map((child) => child.waitFor('ready')));
      await eventually(async () => (await standbys('ticks')) === 2 && (await ticks()).length > 10, { within: 10_000 });
      for (let kill = 0; kill < 2; kill++) {
        const { pid } = (await ticks()).at(-1)!;
        const start = performance.now();
        await children.find((child) => child.pid === pid)!.kill();
        await eventually(async () => (await ticks()).at(-1)!.pid !== pid);
        expect(performance.now() - start).toBeLessThan(KEY_TIMEOUT + 1_000 + SLACK);
      }
      const seen = await ticks();
      const terms = seen.filter(({ token }, index) => token !== seen[index - 1]?.token);
      expect(new Set(terms.map(({ pid }) => pid)).size).toBe(3);
      expect(terms).toHaveLength(3);
      expect(terms.map(({ token }) => token)).toEqual(terms.map(({ token }) => token).toSorted((a, b) => a - b));
    } finally {
      await Promise.all(children.map((child) => child.kill()));
    }
  });
});

describe('docs/leader-only.md', () => {
  it('sends invoices and reminders from one app, in one term', async () => {
    const first = await onRedis(BillingJobs, Outbox);
    await eventually(async () => {
      await first.get(BillingJobs).sendInvoices();
      expect(first.get(Outbox).sent).toEqual(['invoices under billing-leader']);
    });
    const second = await onRedis(BillingJobs, Outbox);
    await second.get(BillingJobs).sendInvoices();
    await Promise.all([first.get(BillingJobs).sendReminders(), second.get(BillingJobs).sendReminders()]);
    expect(first.get(Outbox).sent).toEqual(['invoices under billing-leader', 'reminders under billing-leader']);
    expect(second.get(Outbox).sent).toEqual([]);
  });

  it('imports until the term ends', async () => {
    const { get } = await onRedis(ImportJobs, Outbox);
    const { sent } = get(Outbox);
    await eventually(async () => {
      await get(ImportJobs).importAll();
      expect(sent).toHaveLength(3);
    });
    expect(sent[2]).toMatch(/^c\.csv by \d+ under imports-leader$/);
    Object.assign(get(Outbox), {
      send: async (text: string) => {
        sent.push(text);
        await redis.del('imports-leader');
        await currentLease()
          ?.renew()
          .catch(() => undefined);
      },
    });
    await expect(get(ImportJobs).importAll()).rejects.toMatchObject({ name: 'LockLostError' });
    expect(sent).toHaveLength(4);
  });
});
