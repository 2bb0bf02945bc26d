import { Injectable, Module, type OnModuleInit } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { EMPTY, from, lastValueFrom, of, Observable, toArray } from 'rxjs';
import {
  currentLease,
  DistributedLock,
  DistributedLockModule,
  LeaderOnly,
  LockConfigError,
  Locks,
  StoreError,
  type LockStore,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { boot } from './boot.js';
import { Log } from './log.js';
import { candidatesAt } from './leaders.js';

const KEY = 'jobs-leader';
const LONG = { keyTimeout: 60_000 };

@Injectable()
class Jobs {
  calls = 0;

  @LeaderOnly('jobs', LONG)
  async run(body: () => unknown = () => 'ran') {
    this.calls++;
    return body();
  }
  @LeaderOnly('jobs')
  watch(): Observable<unknown> {
    this.calls++;
    return of(1, 2);
  }
  @LeaderOnly('jobs')
  async *rows() {
    this.calls++;
    yield 1;
    yield 2;
  }
}

/** An app that leads, with its jobs. */
async function bootLeader(store?: LockStore) {
  const booted = await boot({ providers: [Jobs] }, store && { store });
  const jobs = booted.get(Jobs);
  await eventually(async () => (await jobs.run()) === 'ran');
  jobs.calls = 0;
  return { ...booted, jobs };
}

const itemsOf = (rows: AsyncIterable<unknown>) => lastValueFrom(from(rows).pipe(toArray()));

describe('a method with @LeaderOnly', () => {
  it('runs on the leader, and on no other app', async () => {
    const { store, jobs } = await bootLeader();
    const standby = (await boot({ providers: [Jobs] }, { store })).get(Jobs);
    const error = new Error('from the body');
    for (let round = 0; round < 3; round++) expect([await jobs.run(), await standby.run()]).toEqual(['ran', undefined]);
    await expect(jobs.run(() => Promise.reject(error))).rejects.toBe(error);
    expect(await lastValueFrom(jobs.watch().pipe(toArray()))).toEqual([1, 2]);
    expect(await lastValueFrom(standby.watch().pipe(toArray()))).toEqual([]);
    expect([await itemsOf(jobs.rows()), await itemsOf(standby.rows())]).toEqual([[1, 2], []]);
    expect([jobs.calls, standby.calls]).toEqual([6, 0]);
  });

  it('runs under the lease of the term: its owner, token and signal; and may take its key again', async () => {
    const { locks, jobs } = await bootLeader();
    const leader = await locks.leaderElection('jobs').leader();
    const seen = await jobs.run(async () => {
      const lease = currentLease();
      expect(lease?.signal.aborted).toBe(false);
      lease?.assertHeld();
      const nested = await jobs.run(() => currentLease()?.owner);
      return [lease?.key, lease?.owner, lease?.fencingToken, nested, await locks.using(KEY, ({ owner }) => owner, { waitTimeout: 0 })];
    });
    const { owner, fencingToken } = leader ?? {};
    expect(seen).toEqual([KEY, owner, fencingToken, owner, owner]);
    expect(currentLease()).toBeUndefined();
  });

  it('stands for election with the options of its methods', async () => {
    class Tuned {
      @LeaderOnly('tuned', { keyTimeout: 7_000 })
      async first() {
        return 'ran';
      }
      @LeaderOnly('tuned', { retryInterval: 70 })
      async second() {
        return 'ran';
      }
    }
    const stand = jest.spyOn(Locks.prototype, 'leaderElection');
    try {
      await boot({ providers: [Tuned] });
      expect(stand).toHaveBeenLastCalledWith('tuned', { keyTimeout: 7_000, retryInterval: 70 });
    } finally {
      stand.mockRestore();
    }
  });

  it('keeps its name, its length and its metadata', () => {
    expect([Jobs.prototype.run.name, Jobs.prototype.watch.length]).toEqual(['run', 0]);
    expect(Reflect.getMetadata('design:paramtypes', Jobs.prototype, 'run')).toEqual([Function]);
  });

  it.each([
    ['above', LeaderOnly('jobs', LONG) as MethodDecorator, DistributedLock({ value: 'job' }) as MethodDecorator, 'job-locks'],
    ['below', DistributedLock({ value: 'job' }) as MethodDecorator, LeaderOnly('jobs', LONG) as MethodDecorator, KEY],
  ])('has both leases with @LeaderOnly %s a lock, and neither elsewhere', async (_order, upper, lower, innermost) => {
    class Both {
      runs: unknown[] = [];
      @upper
      @lower
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
});

describe('the elections of an app', () => {
  it('are one for each name and store', async () => {
    class More {
      @LeaderOnly('jobs')
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
    const second = memoryStore();
    const other = DistributedLockModule.forRoot({ name: 'other', store: second, logger: false });
    const { get, store } = await boot({ imports: [other], providers: [Jobs, More] });
    const call = async () => [await get(Jobs).run(), await get(More).run(), await get(More).mail(), await get(More).other()];
    await eventually(async () => expect(await call()).toEqual(['ran', 'ran', 'mailed', 'other']));
    expect([candidatesAt(store), candidatesAt(second)]).toEqual([[KEY, 'mails-leader'], [KEY]]);
  });

  it('take keyTimeout and retryInterval from any of their methods, else from the module', async () => {
    const remaining = async (store: LockStore) => (await store.mutex.check({ key: KEY, owner: 'nobody' })).remaining;
    const { store } = await bootLeader();
    expect(await remaining(store)).toBeGreaterThan(40_000);
    class Plain {
      @LeaderOnly('jobs')
      async run() {}
    }
    const second = await boot({ providers: [Plain] }, { defaults: { keyTimeout: 120_000, onTimeout: 'throw', minHold: 60_000 } });
    await eventually(async () => (await remaining(second.store)) > 80_000);
    await second.get(Plain).run();
    await second.app.close();
    expect(await second.isTaken(KEY)).toBe(false);
  });

  it.each([
    ['keyTimeout', 5_000],
    ['retryInterval', 50],
  ])('refuse methods that differ in %s', async (option, value) => {
    class First {
      @LeaderOnly('jobs', { [option]: value })
      async one() {}
      @LeaderOnly('jobs')
      async same() {}
    }
    class Second {
      @LeaderOnly('jobs', { [option]: value + 1 })
      async two() {}
    }
    await boot({ providers: [First] });
    const booting = boot({ providers: [First, Second] });
    await expect(booting).rejects.toBeInstanceOf(LockConfigError);
    await expect(booting).rejects.toThrow(
      `@LeaderOnly() on Second.two: "${option}" is ${value + 1}, but it belongs to the election "jobs", and @LeaderOnly() on First.one says ${value}.`,
    );
  });

  it('refuse a name that makes no key, at boot', async () => {
    class Wrong {
      @LeaderOnly('a\nb')
      async run() {}
    }
    await expect(boot({ providers: [Wrong] })).rejects.toThrow(/@LeaderOnly\(\) on Wrong\.run: .*control characters/);
  });

  it('begin late with a module that is loaded late, whose options must be those of before', async () => {
    @Module({ providers: [Jobs] })
    class LazyModule {}
    const { app, store } = await boot({});
    const jobs = (await app.get(LazyModuleLoader).load(() => LazyModule)).get(Jobs);
    await eventually(async () => (await jobs.run()) === 'ran');
    expect(candidatesAt(store)).toEqual([KEY]);
    class Late {
      @LeaderOnly('jobs', { retryInterval: 7 })
      async run() {}
    }
    @Module({ providers: [Late] })
    class LateModule {}
    await expect(app.get(LazyModuleLoader).load(() => LateModule)).rejects.toThrow(/"retryInterval" is 7, .* it has begun without/);
  });

  it('are stood for again when the store has refused for good, with a warning', async () => {
    const inner = memoryStore();
    let refusals = 2;
    const mutex = Object.create(inner.mutex, {
      acquire: {
        value: (...args: Parameters<LockStore['mutex']['acquire']>) =>
          refusals-- > 0 ? Promise.reject(new StoreError('NOPERM', { transient: false })) : inner.mutex.acquire(...args),
      },
    }) as LockStore['mutex'];
    const store: LockStore = {
      name: 'strict',
      requestTimeout: 100,
      mutex,
      supports: (feature) => feature === 'mutex',
      close: () => inner.close(),
    };
    const logger = new Log();
    const { get } = await boot({ providers: [Jobs] }, { store, logger });
    expect(await get(Jobs).run()).toBeUndefined();
    await eventually(async () => (await get(Jobs).run()) === 'ran');
    expect(logger.warnings).toEqual(Array(2).fill(expect.stringMatching(/cannot stand for election as "jobs", and tries again: .*NOPERM/)));
  });
});

describe('before the app stands for election', () => {
  it('a call is an error: in an app that is never initialized', async () => {
    const forRoot = DistributedLockModule.forRoot({ store: memoryStore(), logger: false });
    const module = await Test.createTestingModule({ imports: [forRoot], providers: [Jobs] }).compile();
    const jobs = module.get(Jobs);
    await expect(jobs.run()).rejects.toBeInstanceOf(LockConfigError);
    await expect(jobs.run()).rejects.toThrow(/@LeaderOnly\(\) on Jobs\.run: called before the app has begun to stand for election/);
    await expect(lastValueFrom(jobs.watch(), { defaultValue: EMPTY })).rejects.toBeInstanceOf(LockConfigError);
    await expect(jobs.rows().next()).rejects.toBeInstanceOf(LockConfigError);
    expect(jobs.calls).toBe(0);
  });

  it('a call is an error: in onModuleInit', async () => {
    @Injectable()
    class Early implements OnModuleInit {
      async onModuleInit() {
        await this.run();
      }
      @LeaderOnly('jobs')
      async run() {}
    }
    await expect(boot({ providers: [Early] })).rejects.toThrow(/called before the app has begun to stand for election/);
  });

  it('a call on what was made with new is an error, too', async () => {
    await expect(new Jobs().run()).rejects.toThrow('@LeaderOnly() on Jobs.run: this instance was not made by Nest');
  });
});
