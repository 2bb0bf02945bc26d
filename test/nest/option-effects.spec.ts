// What the options do is tested with the locks themselves (test/contract); here, that a decorated method has them.
import type { DistributedLockOptions } from 'nestjs-distributed-lock';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { KeyLock } from '../../lib/primitives/key-lock.js';
import { boot } from './boot.js';
import { Gate } from '../support/gate.js';

const KEY = 'job-locks';
const LONG = 60_000;

/** An app with one method, locked by these options under {@link KEY}. */
async function bootJob(options: DistributedLockOptions) {
  class Job {
    body: () => unknown = () => 'done';

    @DistributedLock({ value: 'job', ...options })
    async run() {
      return this.body();
    }
  }
  const booted = await boot({ providers: [Job] });
  const { store } = booted;
  /** Another takes the key away in the midst of a body. */
  const steal = () => store.mutex.release({ key: KEY, owner: currentLease()?.owner ?? '', keepFor: 0 });
  return { ...booted, job: booted.get(Job), steal };
}

const DEFAULTS = { keyTimeout: 10_000, retryCount: 3, retryInterval: 500, reentrant: true, fair: false, minHold: 0, renew: true };

it.each<DistributedLockOptions>([
  {},
  { keyTimeout: LONG },
  { retryCount: 1 },
  { retryCount: 0, retryInterval: 20_000 },
  { waitTimeout: 0 },
  { waitTimeout: Infinity, retryCount: 1, retryInterval: 5 },
  { reentrant: false },
  { fair: true },
  { minHold: LONG },
  { maxHold: 80 },
  { onLost: 'ignore', onTimeout: 'skip' },
])('the lock of a method is taken with its options, and the defaults of the others: %p', async (options) => {
  const take = jest.spyOn(KeyLock.prototype, 'take');
  try {
    const { job } = await bootJob(options);
    expect(await job.run()).toBe('done');
    const expected = { ...DEFAULTS, onLost: 'throw', onTimeout: 'throw', label: 'Job.run', ...options };
    expect(take.mock.calls.map(([given]) => given)).toEqual([expected]);
  } finally {
    take.mockRestore();
  }
});

it.each<DistributedLockOptions>([{}, { onLost: 'throw' }])(
  'a result whose lease was lost comes in a LockLostError: %p',
  async (options) => {
    const { job, steal } = await bootJob({ keyTimeout: LONG, ...options });
    job.body = async () => (await steal(), 'sold');
    await expect(job.run()).rejects.toMatchObject({ name: 'LockLostError', code: 'LOCK_LOST', key: KEY, result: 'sold' });
  },
);

it("onLost: 'ignore' hands out the result, and does not wait for the reply to its release", async () => {
  const { job, steal, store } = await bootJob({ keyTimeout: LONG, onLost: 'ignore' });
  job.body = async () => (await steal(), 'sold');
  expect(await job.run()).toBe('sold');
  const gate = new Gate();
  jest.spyOn(store.mutex, 'release').mockImplementation(async () => {
    await gate.pass();
    return 'released';
  });
  job.body = () => 'done';
  expect(await job.run()).toBe('done');
  expect(gate.arrived).toBe(1);
  gate.open();
});
