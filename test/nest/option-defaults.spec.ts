import type { DistributedLockOptions, LockEvents } from 'nestjs-distributed-lock';
import { DistributedLock, DistributedLockModule, Locks, locksToken, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { Test } from '@nestjs/testing';
import { from, lastValueFrom, of } from 'rxjs';
import { boot, isTaken, start } from './boot.js';

const LONG = 60_000;

async function bootJob(own: DistributedLockOptions, defaults: DistributedLockOptions, namespace?: string) {
  class Job {
    body: () => unknown = () => 'done';
    @DistributedLock(own)
    async run(..._args: unknown[]) {
      return this.body();
    }
  }
  const booted = await boot({ providers: [Job] }, { defaults, namespace });
  return { ...booted, job: booted.get(Job) };
}

/** How long a call waits in vain. */
async function patienceOf(own: DistributedLockOptions, defaults: DistributedLockOptions): Promise<LockEvents['timeout']> {
  const { job, locks } = await bootJob({ value: 'job', ...own }, defaults);
  await locks.acquire('job-locks', { keyTimeout: LONG });
  return new Promise((resolve, reject) => {
    locks.on('timeout', resolve);
    job.run().then(reject, (error: unknown) => error instanceof LockTimeoutError || reject(error as Error));
  });
}

describe('defaults of forRoot', () => {
  it('hold for methods that do not say otherwise', async () => {
    const defaults = { prefix: 'app-', keyTimeout: LONG, paramLock: true, minHold: LONG, onTimeout: 'skip', waitTimeout: 0 } as const;
    const { job, acquired, store } = await bootJob({}, defaults);
    expect(await job.run('a')).toBe('done');
    expect(await job.run('a')).toBeUndefined();
    expect(await job.run('b')).toBe('done');
    expect(acquired).toEqual([expect.stringMatching(/^app-Job\.run-[0-9a-f]{32}-locks$/), expect.any(String)]);
    const { state, remaining } = await store.mutex.check({ key: acquired[0] ?? '', owner: 'nobody' });
    expect([state, remaining > LONG / 2]).toEqual(['taken', true]);
  });

  it('give way to an own option', async () => {
    const {
      job,
      acquired,
      isTaken: taken,
    } = await bootJob({ prefix: 'own-', value: 'job', minHold: 0 }, { prefix: 'app-', minHold: LONG });
    await job.run();
    expect(acquired).toEqual(['own-job-locks']);
    expect(await taken('own-job-locks')).toBe(false);
  });

  it.each<[string, DistributedLockOptions, DistributedLockOptions, RegExp]>([
    ['an own key over a default paramLock', { key: () => 'own' }, { paramLock: true }, /^job-own-locks$/],
    ['an own paramLock over a default key', { paramLock: ['0'] }, { key: () => 'default' }, /^job-[0-9a-f]{32}-locks$/],
    ['an own paramLock: false over a default paramLock', { paramLock: false }, { paramLock: true }, /^job-locks$/],
    ['an own paramLock: false over a default key', { paramLock: false }, { key: () => 'default' }, /^job-locks$/],
    ['a default key', {}, { key: () => 'default' }, /^job-default-locks$/],
    [
      'an own option that is undefined',
      { prefix: undefined, value: undefined, key: undefined },
      { prefix: 'app-', value: 'all' },
      /^app-all-locks$/,
    ],
    ['an own empty value beside a default prefix', { value: '' }, { prefix: 'app' }, /^app-locks$/],
  ])('are weighed against own options, key and paramLock as one: %s', async (_what, own, defaults, key) => {
    const { job, acquired } = await bootJob({ value: 'job', ...own }, defaults);
    await job.run('a');
    expect(acquired).toEqual([expect.stringMatching(key)]);
  });

  it.each<[string, DistributedLockOptions, DistributedLockOptions]>([
    ['an own retryCount over a default waitTimeout', { retryCount: 1 }, { waitTimeout: 2_000 }],
    ['an own waitTimeout over a default retryCount', { waitTimeout: 0 }, { retryCount: 0 }],
    ['a default waitTimeout over our retryCount', {}, { waitTimeout: 0 }],
    ['a default retryCount', {}, { retryCount: 1 }],
  ])('do not lengthen an own patience: %s', async (_what, own, defaults) => {
    expect((await patienceOf(own, defaults)).attempts).toBe(1);
  });

  it('combine with own options: a default retryInterval with an own retryCount', async () => {
    expect((await patienceOf({ retryCount: 2 }, { retryInterval: 80 })).waited).toBeGreaterThanOrEqual(80);
  });

  it('of the default store may name another store, whose defaults then hold', async () => {
    class Job {
      @DistributedLock({ value: 'job' })
      async run() {
        return Promise.all([first, second].map((store) => isTaken(store, 'second-job-locks')));
      }
    }
    const [first, second] = [memoryStore(), memoryStore()];
    const imports = [
      DistributedLockModule.forRoot({ store: first, logger: false, defaults: { store: 'second', prefix: 'first-' } }),
      DistributedLockModule.forRoot({ store: second, logger: false, name: 'second', defaults: { prefix: 'second-' } }),
    ];
    const app = await start(Test.createTestingModule({ imports, providers: [Job] }));
    expect(await app.get(Job).run()).toEqual([false, true]);
  });

  it('may say what methods return of which nothing else tells', async () => {
    class Job {
      @DistributedLock()
      stream() {
        return of('streamed');
      }
      @DistributedLock()
      async run() {
        return 'run';
      }
    }
    const { get } = await boot({ providers: [Job] }, { defaults: { returns: 'observable' } });
    expect(await lastValueFrom(from(get(Job).stream()))).toBe('streamed');
    expect(await get(Job).run()).toBe('run');
  });

  it('of each store hold for its methods and for programs', async () => {
    class Job {
      @DistributedLock({ value: 'job', store: 'second' })
      async run() {
        return this.leftAt('job-locks');
      }
      async leftAt(key: string) {
        return (await second.mutex.check({ key, owner: 'nobody' })).remaining;
      }
    }
    const [first, second] = [memoryStore(), memoryStore()];
    const imports = [
      DistributedLockModule.forRoot({ store: first, logger: false, defaults: { keyTimeout: 100 } }),
      DistributedLockModule.forRoot({ store: second, logger: false, name: 'second', defaults: { keyTimeout: LONG } }),
    ];
    const app = await start(Test.createTestingModule({ imports, providers: [Job] }));
    const job = app.get(Job);
    expect(await job.run()).toBeGreaterThan(LONG / 2);
    expect(await app.get<Locks>(locksToken('second')).using('a', () => job.leftAt('a'))).toBeGreaterThan(LONG / 2);
  });
});
