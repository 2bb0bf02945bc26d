import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { DistributedLock, DistributedLockInterceptor, DistributedLockModule, LockAbortedError, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { GarbageCount } from '../contract/garbage.js';
import { eventually } from '../support/eventually.js';
import { Gate } from '../support/gate.js';

const PATIENT = { retryCount: 0, retryInterval: 5, keyTimeout: 60_000 };

@Injectable()
class Jobs {
  readonly gate = new Gate();

  @DistributedLock({ value: 'job', ...PATIENT })
  async run(): Promise<string> {
    return 'done';
  }
  @DistributedLock({ value: 'outer', ...PATIENT })
  async runLater(): Promise<string> {
    await this.gate.pass();
    return this.run();
  }
}

/** An app that is given the instance. Nothing else of it is kept here. */
async function open(jobs: Jobs, namespace = '') {
  const module = await Test.createTestingModule({
    imports: [DistributedLockModule.forRoot({ store: memoryStore(), namespace, logger: false })],
    providers: [{ provide: Jobs, useValue: jobs }],
  }).compile();
  const app = module.createNestApplication({ logger: false });
  return app.init();
}

describe('an instance that apps have as a value', () => {
  const APPS = 20;

  const openAndClose = async (jobs: Jobs, apps: GarbageCount) => {
    const app = await open(jobs);
    expect(await jobs.run()).toBe('done');
    apps.add(app.get(DistributedLockInterceptor));
    await app.close();
  };
  const openAll = async (jobs: Jobs, apps: GarbageCount) => {
    const opened = await Promise.all(Array.from({ length: APPS }, () => open(jobs)));
    for (const app of opened) apps.add(app.get(DistributedLockInterceptor));
    for (const app of opened.reverse()) {
      expect(await jobs.run()).toBe('done');
      await app.close();
    }
  };

  it('keeps none of them in memory when they were open one after another', async () => {
    const jobs = new Jobs();
    const apps = new GarbageCount();
    for (let opened = 0; opened < APPS; opened++) await openAndClose(jobs, apps);
    await eventually(async () => expect(await apps.reachable()).toBe(0));
    await expect(jobs.run()).rejects.toBeInstanceOf(LockAbortedError);
  });

  it('keeps none of them in memory when they were open at the same time', async () => {
    const jobs = new Jobs();
    const apps = new GarbageCount();
    await openAll(jobs, apps);
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

  it('is locked in the other app while the later one closes', async () => {
    const jobs = new Jobs();
    const first = await open(jobs);
    const second = await open(jobs);
    const close = jest.spyOn(second.get(Locks), 'close');
    const call = jobs.runLater();
    await eventually(() => jobs.gate.arrived === 1);
    const closing = second.close();
    await eventually(() => expect(close).toHaveBeenCalled());
    const acquired: string[] = [];
    first.get(Locks).on('acquired', ({ key }) => void acquired.push(key));
    expect(await jobs.run()).toBe('done');
    expect(acquired).toEqual(['job-locks']);
    jobs.gate.open();
    await call;
    await closing;
    await first.close();
  });

  it('still takes keys of a closing app for calls that run', async () => {
    const jobs = new Jobs();
    const app = await open(jobs);
    const close = jest.spyOn(app.get(Locks), 'close');
    const call = jobs.runLater();
    await eventually(() => jobs.gate.arrived === 1);
    const closing = app.close();
    await eventually(() => expect(close).toHaveBeenCalled());
    jobs.gate.open();
    expect(await call).toBe('done');
    await closing;
  });
});
