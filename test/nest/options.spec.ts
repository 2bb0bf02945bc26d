// What the options do is tested with the locks themselves (test/contract); here, that a decorated method has them.
import '../support/virtual-time.js';
import { Test } from '@nestjs/testing';
import { from, lastValueFrom, of } from 'rxjs';
import type { DistributedLockModuleOptions, DistributedLockOptions, TimeoutContext } from 'nestjs-distributed-lock';
import { currentLease, DistributedLock, DistributedLockModule, Locks, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';
import { locksToken } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { KeyLock } from '../../lib/primitives/key-lock.js';
import { Gate } from '../support/gate.js';
import { boot, isTaken, start } from './boot.js';
import { classOf } from './class-of.js';
import { expectRefused } from './refusal.js';

const KEY = 'job-locks';
const LONG = 60_000;
const AWAY = new StoreError('The store is away.', { transient: true });

/** An app with one method, locked by these options. */
async function bootJob(options: DistributedLockOptions, defaults?: DistributedLockOptions) {
  class Job {
    body: (...args: unknown[]) => unknown = () => 'done';
    @DistributedLock({ value: 'job', ...options })
    async run(...args: unknown[]): Promise<unknown> {
      return this.body(...args);
    }
  }
  const booted = await boot({ providers: [Job] }, { defaults });
  /** Another takes the key away in the midst of a body. */
  const steal = () => booted.store.mutex.release({ key: KEY, owner: currentLease()?.owner ?? '', keepFor: 0 });
  return { ...booted, job: booted.get(Job), steal };
}

describe('the options of a method', () => {
  afterEach(() => jest.restoreAllMocks());
  const DEFAULTS = { keyTimeout: 10_000, retryCount: 3, retryInterval: 500, reentrant: true, fair: false, minHold: 0, renew: true };

  it.each<DistributedLockOptions>([
    {},
    { keyTimeout: LONG, retryCount: 0, retryInterval: 20_000 },
    { waitTimeout: Infinity, retryCount: 1, minHold: LONG },
    { reentrant: false, fair: true, maxHold: 80, renew: false },
    { onLost: 'ignore', onTimeout: 'skip', label: 'Named' },
  ])('are those of its lock, with the defaults of the others: %p', async (options) => {
    const take = jest.spyOn(KeyLock.prototype, 'take');
    const { job } = await bootJob(options);
    expect(await job.run()).toBe('done');
    const expected = { ...DEFAULTS, onLost: 'throw', onTimeout: 'throw', label: 'Job.run', ...options };
    expect(take.mock.calls.map(([given]) => given)).toEqual([expected]);
  });

  it("onLost: 'ignore' hands out the result, and does not wait for the reply to its release", async () => {
    const { job, steal, store } = await bootJob({ keyTimeout: LONG, onLost: 'ignore' });
    job.body = async () => (await steal(), 'sold');
    expect(await job.run()).toBe('sold');
    const gate = new Gate();
    jest.spyOn(store.mutex, 'release').mockImplementation(async () => (await gate.pass(), 'released'));
    job.body = () => 'done';
    expect(await job.run()).toBe('done');
    expect(gate.arrived).toBe(1);
    gate.open();
  });
});

describe('onTimeout', () => {
  /** Its key is taken. */
  async function bootBusy(options: DistributedLockOptions) {
    const booted = await bootJob({ key: (month) => month as string, waitTimeout: 0, ...options });
    const lease = await booted.locks.acquire('job-may-locks', { keyTimeout: LONG });
    const body = jest.fn((month: unknown) => `${String(month)} is done`);
    booted.job.body = body;
    return { ...booted, body, lease };
  }

  it('calls a function with the call that did not get its lock, only then, and outside of the call chain', async () => {
    const contexts: TimeoutContext[] = [];
    const leases: unknown[] = [];
    const { job, lease } = await bootBusy({ onTimeout: (context) => void (contexts.push(context), leases.push(currentLease())) });
    await job.run('may', 12);
    expect(contexts).toEqual([
      { key: 'job-may-locks', args: ['may', 12], target: expect.anything(), method: 'run', error: expect.any(LockTimeoutError) },
    ]);
    expect(contexts[0]?.target).toBe(job);
    await lease.release();
    expect(await job.run('may', 1)).toBe('may is done');
    expect(leases).toEqual([undefined]);
  });

  // What becomes of such a call is decided by the locks (test/contract).
  it.each<DistributedLockOptions['onTimeout']>(['skip', () => 'skipped'])('has no say in an outage: %p', async (onTimeout) => {
    const { job, body, store } = await bootBusy({ waitTimeout: 50, onTimeout });
    store.mutex.acquire = () => Promise.reject(AWAY);
    await expect(job.run('june')).rejects.toBeInstanceOf(StoreError);
    expect(body).not.toHaveBeenCalled();
  });
});

describe('defaults of forRoot', () => {
  it('hold for methods that do not say otherwise', async () => {
    const defaults = { prefix: 'app-', keyTimeout: LONG, paramLock: true, minHold: LONG, onTimeout: 'skip', waitTimeout: 0 } as const;
    const { job, acquired, store } = await bootJob({ value: undefined }, defaults);
    expect([await job.run('a'), await job.run('a'), await job.run('b')]).toEqual(['done', undefined, 'done']);
    expect(acquired).toEqual([expect.stringMatching(/^app-Job\.run-[0-9a-f]{32}-locks$/), expect.any(String)]);
    const { state, remaining } = await store.mutex.check({ key: acquired[0]!, owner: 'nobody' });
    expect([state, remaining > LONG / 2]).toEqual(['taken', true]);
  });

  it('give way to an own option', async () => {
    const { job, acquired, isTaken: taken } = await bootJob({ prefix: 'own-', minHold: 0 }, { prefix: 'app-', minHold: LONG });
    await job.run();
    expect([acquired, await taken('own-job-locks')]).toEqual([['own-job-locks'], false]);
  });

  it.each<[string, DistributedLockOptions, DistributedLockOptions, RegExp]>([
    ['an own key over a default paramLock', { key: () => 'own' }, { paramLock: true }, /^job-own-locks$/],
    ['an own paramLock over a default key', { paramLock: ['0'] }, { key: () => 'default' }, /^job-[0-9a-f]{32}-locks$/],
    ['an own paramLock: false over a default paramLock', { paramLock: false }, { paramLock: true }, /^job-locks$/],
    ['an own paramLock: false over a default key', { paramLock: false }, { key: () => 'default' }, /^job-locks$/],
    ['a default key', {}, { key: () => 'default' }, /^job-default-locks$/],
    ['an own option that is undefined', { prefix: undefined, value: undefined }, { prefix: 'app-', value: 'all' }, /^app-all-locks$/],
    ['an own empty value beside a default prefix', { value: '' }, { prefix: 'app' }, /^app-locks$/],
  ])('are weighed against own options, key and paramLock as one: %s', async (_what, own, defaults, key) => {
    const { job, acquired } = await bootJob(own, defaults);
    await job.run('a');
    expect(acquired).toEqual([expect.stringMatching(key)]);
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

  it('of the default store may name another store, whose defaults then hold, also for programs', async () => {
    class Job {
      @DistributedLock({ value: 'job' })
      async run() {
        const taken = await Promise.all([first, second].map((store) => isTaken(store, 'second-job-locks')));
        return { taken, left: currentLease()!.remaining() };
      }
    }
    const [first, second] = [memoryStore(), memoryStore()];
    const imports = [
      DistributedLockModule.forRoot({ store: first, logger: false, defaults: { keyTimeout: 100, store: 'second', prefix: 'first-' } }),
      DistributedLockModule.forRoot({ store: second, logger: false, name: 'second', defaults: { keyTimeout: LONG, prefix: 'second-' } }),
    ];
    const app = await start(Test.createTestingModule({ imports, providers: [Job] }));
    const { taken, left } = await app.get(Job).run();
    expect([taken, left > LONG / 2]).toEqual([[false, true], true]);
    expect(await app.get<Locks>(locksToken('second')).using('a', (lease) => lease.remaining())).toBeGreaterThan(LONG / 2);
  });
});

describe('an app boots', () => {
  const bootShop = (options: DistributedLockOptions, module?: Partial<DistributedLockModuleOptions>) =>
    boot({ providers: [classOf('Shop', { buy: DistributedLock(options) })] }, module);
  const NAMES =
    'keyTimeout retryCount retryInterval waitTimeout minHold maxHold reentrant fair renew label onTimeout onLost prefix value store key paramLock returns';
  it.each<[string, DistributedLockOptions]>([
    ['options that are undefined', Object.fromEntries(NAMES.split(' ').map((name) => [name, undefined]))],
    ['the least values', { keyTimeout: 10, retryCount: 0, retryInterval: 1, waitTimeout: 0, minHold: 0, maxHold: 1 }],
    ['the longest key', { value: 'x'.repeat(512 - '-locks'.length) }],
    ['a key and no paramLock', { key: () => 'a', paramLock: false }],
  ])('with %s', async (_what, options) => {
    await bootShop(options);
  });

  it.each<[string, DistributedLockOptions, Partial<DistributedLockModuleOptions>]>([
    ['is empty without a prefix', { value: '' }, {}],
    ['is empty with the defaults', { value: '' }, { defaults: { prefix: '' } }],
    ['is too long with its prefix', { prefix: 'x'.repeat(256), value: 'x'.repeat(256) }, {}],
    ['is too long with the namespace', { value: 'x'.repeat(500) }, { namespace: 'test:abc' }],
    ['has a control character before parts', { value: 'a\n', paramLock: true }, {}],
    ['has a stray brace before parts', { prefix: 'a{', value: 'b', key: () => 5 }, {}],
  ])('not with a key that %s', async (_what, options, moduleOptions) => {
    await expectRefused(bootShop(options, moduleOptions), /@DistributedLock\(\) on Shop\.buy: .*\bkey\b/);
  });

  it('not with a minHold that is longer than the maxHold of its defaults', async () => {
    const booting = bootShop({ minHold: 60_000 }, { defaults: { maxHold: 10_000 } });
    await expect(booting).rejects.toThrow(/@DistributedLock\(\) on Shop\.buy: "minHold" \(60000 ms\) must not be longer than "maxHold"/);
  });
});
