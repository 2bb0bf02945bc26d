import { Cron, Interval, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { boot, type Booted } from './boot.js';
import { Gate } from './gate.js';

const NEVER = '0 0 0 29 2 *';

class Jobs {
  readonly gate = new Gate();
  readonly runs: string[] = [];

  @Cron(NEVER, { name: 'above' })
  @DistributedLock({ onTimeout: 'skip', waitTimeout: 0 })
  async cronAbove() {
    await this.run();
  }

  @DistributedLock({ onTimeout: 'skip', waitTimeout: 0 })
  @Cron(NEVER, { name: 'below' })
  async cronBelow() {
    await this.run();
  }

  private async run() {
    this.runs.push(currentLease()?.key ?? 'unlocked');
    await this.gate.pass();
  }
}

const crons = [
  ['above', 'Jobs.cronAbove-locks'],
  ['below', 'Jobs.cronBelow-locks'],
] as const;

const fire = ({ app }: Booted, name: string) => void app.get(SchedulerRegistry).getCronJob(name).fireOnTick();

/** Fires the job and waits until it has been skipped. */
async function fireInVain(booted: Booted, name: string) {
  const skipped = new Promise((resolve) => booted.locks.on('timeout', resolve));
  fire(booted, name);
  await skipped;
}
const bootJobs = (store?: Booted['store'], ...providers: object[]) =>
  boot({ imports: [ScheduleModule.forRoot()], providers: [Jobs, ...(providers as [])] }, store && { store });

describe('a locked method with @Cron', () => {
  it.each(crons)('is locked with @Cron %s @DistributedLock', async (name, key) => {
    const booted = await bootJobs();
    const jobs = booted.get(Jobs);
    fire(booted, name);
    await eventually(() => jobs.gate.arrived === 1);
    expect(await booted.isTaken(key)).toBe(true);
    await fireInVain(booted, name);
    jobs.gate.open();
    await eventually(async () => !(await booted.isTaken(key)));
    expect(jobs.runs).toEqual([key]);
  });

  it.each(crons)('runs on one of two apps at a time, with @Cron %s', async (name, key) => {
    const first = await bootJobs();
    const second = await bootJobs(first.store);
    fire(first, name);
    await eventually(() => first.get(Jobs).gate.arrived === 1);
    await fireInVain(second, name);
    expect(second.get(Jobs).runs).toEqual([]);
    first.get(Jobs).gate.open();
    await eventually(async () => !(await first.isTaken(key)));
    second.get(Jobs).gate.open();
    fire(second, name);
    await eventually(() => expect(second.get(Jobs).runs).toEqual([key]));
  });

  it('is locked on what a factory made', async () => {
    class Factory {
      runs: unknown[] = [];
      @Cron(NEVER, { name: 'factory' })
      @DistributedLock()
      async tick() {
        this.runs.push(currentLease()?.key);
      }
    }
    const booted = await bootJobs(undefined, { provide: Factory, useFactory: () => new Factory() });
    fire(booted, 'factory');
    await eventually(() => expect(booted.get(Factory).runs).toEqual(['Factory.tick-locks']));
  });

  it('is locked when time fires it, with @Interval too', async () => {
    class Ticker {
      seconds: unknown[] = [];
      ticks: unknown[] = [];
      @Cron('* * * * * *')
      @DistributedLock()
      async second() {
        this.seconds.push(currentLease()?.key);
      }
      @DistributedLock()
      @Interval(20)
      async tick() {
        this.ticks.push(currentLease()?.key);
      }
    }
    const { get } = await bootJobs(undefined, Ticker);
    const { seconds, ticks } = get(Ticker);
    await eventually(() => seconds.length > 0 && ticks.length > 1);
    expect(seconds[0]).toBe('Ticker.second-locks');
    expect(ticks[0]).toBe('Ticker.tick-locks');
  });
});
