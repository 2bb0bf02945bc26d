import '../support/virtual-time.js';
import { Injectable, Module, type OnModuleInit } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { EMPTY, from, lastValueFrom, type Observable, toArray } from 'rxjs';
import {
  currentLease,
  DistributedLock,
  DistributedLockModule,
  LeaderOnly,
  LockConfigError,
  Locks,
  StoreError,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { classOf } from './class-of.js';
import { bootJobs, bootLeader, candidatesAt, Jobs, KEY, leads } from './leaders.js';
import { Log } from './log.js';

const itemsOf = (rows: AsyncIterable<unknown> | Observable<unknown>) => lastValueFrom(from(rows).pipe(toArray()));

describe('a method with @LeaderOnly', () => {
  it('runs on the leader, and on no other app', async () => {
    const { store, jobs } = await bootLeader();
    const { jobs: standby } = await bootJobs(store);
    const error = new Error('from the body');
    for (let round = 0; round < 3; round++) expect([await jobs.run(), await standby.run()]).toEqual(['ran', undefined]);
    await expect(jobs.run(() => Promise.reject(error))).rejects.toBe(error);
    expect([await itemsOf(jobs.watch()), await itemsOf(standby.watch())]).toEqual([[1, 2], []]);
    expect([await itemsOf(jobs.rows()), await itemsOf(standby.rows())]).toEqual([[1, 2], []]);
    expect([jobs.calls, standby.calls]).toEqual([6, 0]);
  });

  it('runs under the lease of the term: its owner, token and signal; and may take its key again', async () => {
    const { locks, jobs } = await bootLeader();
    const { owner, fencingToken } = (await locks.leaderElection('jobs').leader()) ?? {};
    const seen = await jobs.run(async () => {
      const lease = currentLease();
      expect(lease?.signal.aborted).toBe(false);
      lease?.assertHeld();
      const nested = await jobs.run(() => currentLease()?.owner);
      return [lease?.key, lease?.owner, lease?.fencingToken, nested, await locks.using(KEY, (again) => again.owner, { waitTimeout: 0 })];
    });
    expect(seen).toEqual([KEY, owner, fencingToken, owner, owner]);
    expect(currentLease()).toBeUndefined();
  });

  const decorators = [LeaderOnly('jobs'), DistributedLock({ value: 'job' })] as MethodDecorator[];
  it.each([
    ['above', decorators, 'job-locks'],
    ['below', decorators.toReversed(), KEY],
  ])('has both leases with @LeaderOnly %s a lock, and neither elsewhere', async (_order, [upper, lower], innermost) => {
    class Both {
      runs: unknown[] = [];
      @(upper!)
      @(lower!)
      async run() {
        this.runs.push(currentLease()?.key);
        return 'ran';
      }
    }
    const first = await boot({ providers: [Both] });
    await eventually(async () => (await first.get(Both).run()) === 'ran');
    const second = await boot({ providers: [Both] }, { store: first.store });
    expect(await second.get(Both).run()).toBeUndefined();
    expect([first.get(Both).runs, second.get(Both).runs]).toEqual([[innermost], []]);
    expect(first.acquired).toContain('job-locks');
    await eventually(async () => !(await first.isTaken('job-locks')));
  });

  it('is an error before the app campaigns: where it is not initialized, in onModuleInit, on what was made with new', async () => {
    const forRoot = DistributedLockModule.forRoot({ store: memoryStore(), logger: false });
    const module = await Test.createTestingModule({ imports: [forRoot], providers: [Jobs] }).compile();
    const jobs = module.get(Jobs);
    await expect(jobs.run()).rejects.toThrow(/@LeaderOnly\(\) on Jobs\.run: called before the app campaigns/);
    const calls = [jobs.run(), lastValueFrom(jobs.watch(), { defaultValue: EMPTY }), jobs.rows().next()];
    await Promise.all(calls.map((call) => expect(call).rejects.toBeInstanceOf(LockConfigError)));
    expect(jobs.calls).toBe(0);
    @Injectable()
    class Early implements OnModuleInit {
      async onModuleInit() {
        await this.run();
      }
      @LeaderOnly('jobs')
      async run() {}
    }
    await expect(boot({ providers: [Early] })).rejects.toThrow(/called before the app campaigns/);
    await expect(new Jobs().run()).rejects.toThrow('@LeaderOnly() on Jobs.run: this instance was not made by Nest');
  });
});

describe('the elections of an app', () => {
  it('are one for each name and store, with the options of their methods', async () => {
    class More {
      @LeaderOnly('jobs', { retryInterval: 70 })
      async run() {
        return 'ran';
      }
      @LeaderOnly('mails')
      async mail() {
        return 'mailed';
      }
      @LeaderOnly('jobs', { store: 'other' })
      async other() {
        return 'other';
      }
    }
    const stand = jest.spyOn(Locks.prototype, 'leaderElection');
    const second = memoryStore();
    const other = DistributedLockModule.forRoot({ name: 'other', store: second, logger: false });
    const { get, store } = await boot({ imports: [other], providers: [Jobs, More] });
    expect(stand).toHaveBeenCalledWith('jobs', { keyTimeout: 60_000, retryInterval: 70 });
    stand.mockRestore();
    const call = async () => [await get(Jobs).run(), await get(More).run(), await get(More).mail(), await get(More).other()];
    await eventually(async () => expect(await call()).toEqual(['ran', 'ran', 'mailed', 'other']));
    expect([candidatesAt(store), candidatesAt(second)]).toEqual([[KEY, 'mails-leader'], [KEY]]);
  });

  it('have as label the method that they are for, or their name if there are several', async () => {
    const More = classOf('More', { mail: LeaderOnly('mails'), run: LeaderOnly('jobs') });
    const { locks } = await boot({ providers: [Jobs, More] });
    const label = async (key: string) => (await locks.inspect(key)).holders[0]?.report?.label;
    await eventually(async () => expect([await label('mails-leader'), await label(KEY)]).toEqual(['More.mail', 'jobs']));
  });

  it('take from the module what their methods do not say, but none of the options that an election has not', async () => {
    const Plain = classOf('Plain', { run: LeaderOnly('jobs') });
    const { app, get, store, isTaken } = await boot(
      { providers: [Plain] },
      { defaults: { keyTimeout: 120_000, onTimeout: 'throw', minHold: 60_000 } },
    );
    await eventually(async () => (await store.mutex.check({ key: KEY, owner: 'nobody' })).remaining > 80_000);
    await get(Plain).run();
    await app.close();
    expect(await isTaken(KEY)).toBe(false);
  });

  it.each([
    ['keyTimeout', 5_000],
    ['retryInterval', 50],
  ])('refuse methods that differ in %s', async (option, value) => {
    const First = classOf('First', { one: LeaderOnly('jobs', { [option]: value }), same: LeaderOnly('jobs') });
    const Second = classOf('Second', { two: LeaderOnly('jobs', { [option]: value + 1 }) });
    await boot({ providers: [First] });
    const booting = boot({ providers: [First, Second] });
    await expect(booting).rejects.toBeInstanceOf(LockConfigError);
    await expect(booting).rejects.toThrow(
      `@LeaderOnly() on Second.two: "${option}" is ${value + 1}, but it belongs to the election "jobs", and @LeaderOnly() on First.one says ${value}.`,
    );
  });

  it('refuse a name that makes no key, at boot', async () => {
    const Wrong = classOf('Wrong', { run: LeaderOnly('a\nb') });
    await expect(boot({ providers: [Wrong] })).rejects.toThrow(/@LeaderOnly\(\) on Wrong\.run: .*control characters/);
  });

  it('begin late with a module that is loaded late, whose options must be those of before', async () => {
    @Module({ providers: [Jobs] })
    class LazyModule {}
    @Module({ providers: [classOf('Late', { run: LeaderOnly('jobs', { retryInterval: 7 }) })] })
    class LateModule {}
    const { app, store } = await boot({});
    await leads((await app.get(LazyModuleLoader).load(() => LazyModule)).get(Jobs));
    expect(candidatesAt(store)).toEqual([KEY]);
    await expect(app.get(LazyModuleLoader).load(() => LateModule)).rejects.toThrow(/"retryInterval" is 7, .* it has begun without/);
  });

  it('begin again when the store has refused for good, with one warning in a minute', async () => {
    const store = memoryStore();
    const acquire = store.mutex.acquire.bind(store.mutex);
    let refusals = 4;
    store.mutex.acquire = (request) => (refusals-- > 0 ? Promise.reject(new StoreError('NOPERM', { transient: false })) : acquire(request));
    const logger = new Log();
    const { get } = await boot({ providers: [Jobs] }, { store, logger, silence: ['NDL_SHUTDOWN_HOOKS'] });
    expect(await get(Jobs).run()).toBeUndefined();
    await leads(get(Jobs));
    expect(logger.warnings).toEqual([expect.stringMatching(/campaign of this app for "jobs" was refused, and begins again: .*NOPERM/)]);
  });
});
