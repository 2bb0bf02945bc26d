import { ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { DistributedLockModule, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { Mailer, ReportService } from './cron-lock.js';

it('a tick is run by one of three instances, also where the clocks of the others are behind', async () => {
  const [sent, ended] = [[] as number[], [] as string[]];
  const store = memoryStore();
  const open = async (instance: number) => {
    const mailer: Mailer = { send: async () => void sent.push(instance) };
    const app = await Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ store, logger: false }), ScheduleModule.forRoot()],
      providers: [ReportService, { provide: Mailer, useValue: mailer }],
    }).compile();
    return app.init();
  };
  const apps = await Promise.all([0, 1, 2].map(open));
  for (const app of apps) {
    app.get(Locks).on('released', () => ended.push('sent'));
    app.get(Locks).on('timeout', () => ended.push('skipped'));
    const before = ended.length;
    for (const job of app.get(SchedulerRegistry).getCronJobs().values()) void job.fireOnTick();
    await eventually(() => ended.length > before); // the job of the first one has ended before the next clock ticks
  }
  expect([sent, ended]).toEqual([[0], ['sent', 'skipped', 'skipped']]);
  await expect(apps[1]!.get(ReportService).sendReport()).resolves.toBeUndefined(); // skipped: no error
  for (const app of apps) await app.close();
});
