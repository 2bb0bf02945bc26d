import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { CronLock, currentLease, LockConfigError, type LockStore } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { Log } from './log.js';
import { Gate } from '../support/gate.js';
import { refusalOf } from './refusal.js';

const NEVER = '0 0 0 29 2 *';
const KEY = 'Jobs.report-locks';

class Jobs {
  readonly gate = new Gate();
  readonly runs: unknown[] = [];

  @Cron(NEVER, { name: 'report' })
  @CronLock({ minHold: 1500, keyTimeout: 1_000 })
  async report(): Promise<void> {
    this.runs.push(currentLease()?.key);
    await this.gate.pass();
  }
}

async function bootJobs(store: LockStore) {
  const logger = new Log();
  const { app, get } = await boot({ imports: [ScheduleModule.forRoot()], providers: [Jobs] }, { store, logger });
  const job = app.get(SchedulerRegistry).getCronJob('report');
  return { jobs: get(Jobs), tick: () => void job.fireOnTick(), details: logger.details };
}

describe('@CronLock', () => {
  it('runs a tick on one of two apps, skips it on the other, and says so at debug level', async () => {
    const store = memoryStore();
    const [first, second] = [await bootJobs(store), await bootJobs(store)];
    first.tick();
    await eventually(() => expect(first.jobs.runs).toEqual([KEY]));
    second.tick();
    await eventually(() => expect(second.details).toContainEqual(expect.stringMatching(/^Jobs\.report is skipped: \S+@\S+ has it\.$/)));
    expect(first.details).toContain('Jobs.report runs here.');
    expect(second.jobs.runs).toEqual([]);
    first.jobs.gate.open();
  });

  it.each<[string, object | undefined, RegExp]>([
    ['without options', undefined, /@CronLock\(\) on Shop\.buy: "minHold" must be a whole number of at least 1, not undefined/],
    ['without minHold', {}, /@CronLock\(\) on Shop\.buy: "minHold" must be a whole number of at least 1, not undefined/],
    ['with an option that it sets itself', { minHold: 5, waitTimeout: 5 }, /@CronLock\(\) on Shop\.buy: unknown option "waitTimeout"/],
  ])('is refused %s', (_what, options, message) => {
    const define = () => {
      const decorator = (CronLock as (given?: object) => MethodDecorator)(options);
      class Shop {
        @decorator
        async buy() {}
      }
      return Shop;
    };
    expect(define).toThrow(LockConfigError);
    expect(refusalOf(define)).toMatch(message);
  });
});
