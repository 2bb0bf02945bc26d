import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { currentLease, LeaderOnly } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { boot, type Booted } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { useRedis } from '../stores/redis/setting.js';
import { among, lockAmong, aboveAndBelow, way } from './ways.js';
import { BillingJobs, DigestJobs, ImportJobs, Outbox, SweepJobs } from './schedule-jobs.js';

const imports = [ScheduleModule.forRoot()];
const NEVER = '0 0 0 29 2 *';

const setting = useRedis();

const onRedis = (...providers: unknown[]) =>
  boot({ imports, providers: providers as never[] }, { store: redisStore({ options: setting.server.connection }) });

/** How many stand by behind a leader. */
const standbys = (name: string) => setting.redis.zcard(`{${name}-leader}:queue`);

const tick = ({ app }: Booted, name: string) => app.get(SchedulerRegistry).getCronJob(name).fireOnTick();

/** One app's call of the job, as its clock would make it; resolves when it was run or skipped. */
async function fire(booted: Booted, name: string): Promise<'ran' | 'skipped'> {
  const outcome = new Promise<'ran' | 'skipped'>((resolve) => {
    booted.locks.on('released', () => resolve('ran'));
    booted.locks.on('timeout', () => resolve('skipped'));
  });
  await tick(booted, name);
  return outcome;
}

aboveAndBelow('Schedules', '@Cron in two apps on one Redis', (order) => {
  it('runs each tick in one of them', async () => {
    const tokens: number[] = [];
    const options = { value: 'tick', onTimeout: 'skip', waitTimeout: 0, minHold: 60_000, keyTimeout: 60_000 } as const;
    class Jobs {
      @lockAmong(order, options, Cron(NEVER, { name: 'tick' }))
      async tick() {
        tokens.push(currentLease()!.fencingToken!);
      }
    }
    const apps = await Promise.all([onRedis(Jobs), onRedis(Jobs)]);
    for (const ticks of [1, 2, 3]) {
      expect((await Promise.all(apps.map((app) => fire(app, 'tick')))).sort()).toEqual(['ran', 'skipped']);
      expect(tokens).toHaveLength(ticks);
      await setting.redis.del('tick-locks'); // as the end of its minHold does
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
  });
});

way('Schedules', 'minHold against clocks that differ', () => {
  it('keeps a quick job from being run again by an app whose clock is behind', async () => {
    const [first, second] = [await onRedis(DigestJobs, Outbox), await onRedis(DigestJobs, Outbox)];
    expect(await fire(first, 'digest')).toBe('ran');
    expect(await fire(second, 'digest')).toBe('skipped');
    await first.app.close(); // which does not free the key
    expect(await fire(second, 'digest')).toBe('skipped');
    expect([first.get(Outbox).sent, second.get(Outbox).sent]).toEqual([['digest under DigestJobs.sendDigest-locks'], []]);
  });

  it('holds for an interval too', async () => {
    const [first, second] = [await onRedis(SweepJobs, Outbox), await onRedis(SweepJobs, Outbox)];
    expect(first.app.get(SchedulerRegistry).getIntervals()).toEqual(['sweep']);
    await Promise.all([first.get(SweepJobs).sweep(), second.get(SweepJobs).sweep()]);
    expect([...first.get(Outbox).sent, ...second.get(Outbox).sent]).toEqual(['sweep under SweepJobs.sweep-locks']);
  });
});

aboveAndBelow('Schedules', '@Cron with @LeaderOnly in two apps on one Redis', (order) => {
  it('runs on the leader only, on the other app as soon as the leader has closed', async () => {
    class Jobs {
      tokens: number[] = [];
      @among(order, LeaderOnly(`cron-${order}`, { keyTimeout: 60_000 }), Cron(NEVER, { name: 'tick' }))
      async tick() {
        this.tokens.push(currentLease()!.fencingToken!);
      }
    }
    const first = await onRedis(Jobs);
    const { tokens: earlier } = first.get(Jobs);
    await eventually(async () => (await tick(first, 'tick'), earlier.length > 0));
    const second = await onRedis(Jobs);
    const { tokens: later } = second.get(Jobs);
    await eventually(async () => (await standbys(`cron-${order}`)) === 1);
    await Promise.all([tick(first, 'tick'), tick(second, 'tick')]);
    expect(later).toEqual([]);
    await first.app.close();
    await eventually(async () => (await tick(second, 'tick'), later.length > 0));
    expect(new Set(earlier).size).toBe(1);
    expect(later[0]).toBeGreaterThan(earlier[0]!);
  });
});

describe('docs/leaders.md', () => {
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
        await setting.redis.del('imports-leader');
        await currentLease()
          ?.renew()
          .catch(() => undefined);
      },
    });
    await expect(get(ImportJobs).importAll()).rejects.toMatchObject({ name: 'LockLostError' });
    expect(sent).toHaveLength(4);
  });
});
