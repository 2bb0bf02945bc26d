import type { DistributedLockOptions, TimeoutContext } from 'nestjs-distributed-lock';
import { currentLease, DistributedLock, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { boot } from './boot.js';

/** An app whose one method is locked by these options and whose key is taken, unless a store is given. */
async function bootBusy(options: DistributedLockOptions, store?: ReturnType<typeof redisStore>) {
  class Report {
    bodies = 0;

    @DistributedLock({ value: 'report', key: (month: string) => month, waitTimeout: 0, ...options })
    async write(month: string, _pages: number): Promise<unknown> {
      return `${month} ${++this.bodies}`;
    }
  }
  const { get, locks } = await boot({ providers: [Report] }, store && { store });
  const lease = store ? undefined : await locks.acquire('report-may-locks', { keyTimeout: 60_000 });
  const report = get(Report);
  return { report, lease, write: () => report.write('may', 12).then(String, (error: unknown) => error) };
}

describe('onTimeout', () => {
  it.each([{}, { onTimeout: 'throw' as const }])('rejects with a LockTimeoutError that names the key: %p', async (options) => {
    const { report, write } = await bootBusy(options);
    const error = await write();
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({ name: 'LockTimeoutError', code: 'LOCK_TIMEOUT', key: 'report-may-locks' });
    expect(report.bodies).toBe(0);
  });

  it('calls a function with the call that was in vain, only then, and outside of the call chain', async () => {
    const contexts: TimeoutContext[] = [];
    const leases: unknown[] = [];
    const { report, lease } = await bootBusy({
      onTimeout: (context) => {
        contexts.push(context);
        leases.push(currentLease());
      },
    });
    await report.write('may', 12);
    expect(contexts).toEqual([
      { key: 'report-may-locks', args: ['may', 12], target: expect.anything(), method: 'write', error: expect.any(LockTimeoutError) },
    ]);
    expect(contexts[0]?.target).toBe(report);
    await lease?.release();
    expect(await report.write('may', 1)).toBe('may 1');
    expect(leases).toEqual([undefined]);
  });

  // What becomes of such a call is told by the locks (test/contract).
  it.each<DistributedLockOptions['onTimeout']>(['skip', () => 'skipped'])('has no say in an outage: %p', async (onTimeout) => {
    const store = redisStore({ options: { path: '/nobody/listens/here.sock', disconnectTimeout: 10 }, requestTimeout: 100 });
    const { report, write } = await bootBusy({ waitTimeout: 50, onTimeout }, store);
    expect(await write()).toBeInstanceOf(StoreError);
    expect(report.bodies).toBe(0);
  });
});
