import { Cron, Interval, ScheduleModule } from '@nestjs/schedule';
import type { Redis } from 'ioredis';
import { currentLease, LeaderOnly } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { boot } from '../nest/boot.js';
import { forkChild } from '../support/child.js';
import { eventually } from '../support/eventually.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { among, place, way } from './place.js';
import { BillingJobs, ImportJobs } from './schedule-leader.js';
import { Outbox } from './schedule-report.js';

const imports = [ScheduleModule.forRoot()];

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

place('Schedules', '@Cron with @LeaderOnly in two apps on one Redis', (order) => {
  it('runs on the leader only, on the other app as soon as the leader has closed', async () => {
    const runs: { app: string; token: number }[] = [];
    const jobsOf = (app: string) => {
      class Jobs {
        @among(order, LeaderOnly(`cron-${order}`, { keyTimeout: 60_000 }), Cron('* * * * * *'))
        async tick() {
          runs.push({ app, token: currentLease()!.fencingToken! });
        }
      }
      return Jobs;
    };
    const first = await onRedis(jobsOf('first'));
    await eventually(() => runs.length > 0);
    await onRedis(jobsOf('second'));
    await eventually(async () => (await standbys(`cron-${order}`)) === 1);
    const before = runs.length;
    await eventually(() => runs.length > before + 1);
    expect(new Set(runs.map(({ app }) => app))).toEqual(new Set(['first']));
    await first.app.close();
    const term = runs.length;
    await eventually(() => runs.length > term + 1);
    expect(new Set(runs.slice(term).map(({ app }) => app))).toEqual(new Set(['second']));
    expect(new Set(runs.map(({ token }) => token)).size).toBe(2);
    expect(runs.at(-1)!.token).toBeGreaterThan(runs[0]!.token);
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
        expect(performance.now() - start).toBeLessThan(KEY_TIMEOUT + 1_000);
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
