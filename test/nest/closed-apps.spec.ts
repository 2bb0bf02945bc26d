import '../support/virtual-time.js';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  currentLease,
  DistributedLock,
  DistributedLockInterceptor,
  DistributedLockModule,
  LockAbortedError,
  Locks,
  type Lease,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { GarbageCount } from '../contract/garbage.js';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';
import { boot } from './boot.js';

const PATIENT = { waitTimeout: Infinity, keyTimeout: 60_000 };

@Injectable()
class Jobs {
  readonly gate = new Gate();
  lease: Lease | undefined;

  @DistributedLock({ value: 'job', ...PATIENT })
  async run(): Promise<string> {
    return 'done';
  }
  @DistributedLock({ value: 'outer', ...PATIENT })
  async runLater(): Promise<string> {
    this.lease = currentLease();
    await this.gate.pass();
    return this.lease?.signal.aborted ? 'ended' : this.run();
  }
}

/** An app that is given the instance. Nothing else of it is kept here. */
async function open(jobs: Jobs) {
  const module = await Test.createTestingModule({
    imports: [DistributedLockModule.forRoot({ store: memoryStore(), logger: false })],
    providers: [{ provide: Jobs, useValue: jobs }],
  }).compile();
  return module.createNestApplication({ logger: false }).init();
}

describe('an instance that apps have as a value', () => {
  const APPS = 20;
  const openAndClose = async (jobs: Jobs, apps: GarbageCount) => {
    for (let opened = 0; opened < APPS; opened++) {
      const app = await open(jobs);
      expect(await jobs.run()).toBe('done');
      apps.add(app.get(DistributedLockInterceptor));
      await app.close();
    }
  };
  const openAll = async (jobs: Jobs, apps: GarbageCount) => {
    const opened = await Promise.all(Array.from({ length: APPS }, () => open(jobs)));
    for (const app of opened) apps.add(app.get(DistributedLockInterceptor));
    for (const app of opened.reverse()) {
      expect(await jobs.run()).toBe('done');
      await app.close();
    }
  };

  it.each([
    ['one after another', openAndClose],
    ['at the same time', openAll],
  ])('keeps none of them in memory when they were open %s', async (_when, openApps) => {
    const jobs = new Jobs();
    const apps = new GarbageCount();
    await openApps(jobs, apps);
    await eventually(async () => expect(await apps.reachable()).toBe(0));
    await expect(jobs.run()).rejects.toBeInstanceOf(LockAbortedError);
  });

  it('rejects calls when all of them are closed, and works again in the next one', async () => {
    const jobs = new Jobs();
    for (const app of [await open(jobs), await open(jobs)]) await app.close();
    const error: unknown = await jobs.run().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockAbortedError);
    expect(error).toMatchObject({ reason: 'shutdown', message: expect.stringContaining('Jobs.run') as string });
    const app = await open(jobs);
    expect(await jobs.run()).toBe('done');
    await app.close();
  });

  it('keeps an app that is open, though nobody else does', async () => {
    const jobs = new Jobs();
    const apps = new GarbageCount();
    await open(jobs).then((app) => apps.add(app.get(DistributedLockInterceptor)));
    expect(await apps.reachable()).toBe(1);
    expect(await jobs.run()).toBe('done');
  });

  it.each([
    ['is locked in the other app', true],
    ['still takes keys of that app', false],
  ])('%s while the app closes in which one of its calls runs', async (_what, hasOther) => {
    const jobs = new Jobs();
    const other = hasOther ? await open(jobs) : undefined;
    const app = await open(jobs);
    const close = jest.spyOn(app.get(Locks), 'close');
    const call = jobs.runLater();
    await eventually(() => jobs.gate.arrived === 1);
    const closing = app.close();
    await eventually(() => expect(close).toHaveBeenCalled());
    const acquired: string[] = [];
    other?.get(Locks).on('acquired', ({ key }) => void acquired.push(key));
    if (hasOther) expect(await jobs.run()).toBe('done');
    expect(acquired).toEqual(hasOther ? ['job-locks'] : []);
    jobs.gate.open();
    expect(await call).toBe('done');
    await closing;
    await other?.close();
  });
});

it('an app that closes waits no longer than its shutdownTimeout: then it aborts and releases, and the method learns of it', async () => {
  const { app, get, isTaken } = await boot({ providers: [Jobs] }, { shutdownTimeout: 100 });
  const jobs = get(Jobs);
  const run = jobs.runLater().catch((error: unknown) => error);
  await eventually(() => jobs.gate.arrived === 1);
  const start = performance.now();
  await app.close();
  expect(Math.round(performance.now() - start)).toBe(100);
  expect(jobs.lease?.signal.aborted).toBe(true);
  expect(() => jobs.lease?.assertHeld()).toThrow();
  expect(await isTaken('outer-locks')).toBe(false);
  jobs.gate.open();
  expect(await run).toMatchObject({ name: 'LockLostError', result: 'ended' });
});
