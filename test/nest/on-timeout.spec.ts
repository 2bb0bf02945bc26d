import type { DistributedLockOptions, TimeoutContext } from 'nestjs-distributed-lock';
import { currentLease, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { bootKind, KINDS, type Kind } from './kinds.js';

/** An app whose one method is locked by these options and whose key is taken. */
async function bootBusy(kind: Kind, options: DistributedLockOptions) {
  class Report {
    bodies = 0;

    @kind.lock({ value: 'report', key: (month: string) => month, waitTimeout: 0, ...options })
    async write(month: string, _pages: number): Promise<unknown> {
      return `${month} ${++this.bodies}`;
    }
  }
  const { get, occupy } = await bootKind(kind, { providers: [Report] });
  const lease = await occupy('report-may-locks');
  return { report: get(Report), lease };
}

const reasonOf = (call: Promise<unknown>) => call.then(String, (error: unknown) => error);

describe.each(KINDS)('onTimeout of $name', (kind) => {
  it.each([{}, { onTimeout: 'throw' as const }])('rejects with a LockTimeoutError that names the key: %p', async (options) => {
    const { report } = await bootBusy(kind, options);
    const error = await reasonOf(report.write('may', 1));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({ name: 'LockTimeoutError', code: 'LOCK_TIMEOUT', key: 'report-may-locks' });
    expect(report.bodies).toBe(0);
  });

  it("resolves to undefined with 'skip'", async () => {
    const { report } = await bootBusy(kind, { onTimeout: 'skip' });
    expect(await report.write('may', 1)).toBeUndefined();
    expect(report.bodies).toBe(0);
    expect(await report.write('june', 1)).toBe('june 1');
  });

  it('calls a function with the call that was in vain', async () => {
    const contexts: TimeoutContext[] = [];
    const { report } = await bootBusy(kind, { onTimeout: (context) => contexts.push(context) });
    await report.write('may', 12);
    expect(contexts).toEqual([
      { key: 'report-may-locks', args: ['may', 12], target: expect.anything(), method: 'write', error: expect.any(LockTimeoutError) },
    ]);
    expect(contexts[0]?.target).toBe(report);
  });

  it('calls the function only in vain, and outside of the call chain', async () => {
    const leases: unknown[] = [];
    const { report, lease } = await bootBusy(kind, { onTimeout: () => leases.push(currentLease()) });
    await report.write('may', 1);
    expect(leases).toEqual([undefined]);
    await lease.release();
    expect(await report.write('may', 1)).toBe('may 1');
    expect(leases).toHaveLength(1);
  });

  const thing = { some: 'thing' };
  it.each<[string, () => unknown, unknown]>([
    ['a value', () => thing, thing],
    ['null', () => null, null],
    ['nothing', () => undefined, undefined],
    ['a promise', () => Promise.resolve(thing), thing],
  ])('resolves to what the function returns: %s', async (_what, onTimeout, value) => {
    const { report } = await bootBusy(kind, { onTimeout });
    expect(await report.write('may', 1)).toBe(value);
    expect(report.bodies).toBe(0);
  });

  const refusal = new Error('come back in May');
  it.each<[string, () => unknown]>([
    ['throws', () => fail()],
    ['rejects with', () => Promise.reject(refusal)],
  ])('rejects with what the function %s', async (_what, onTimeout) => {
    const { report } = await bootBusy(kind, { onTimeout });
    expect(await reasonOf(report.write('may', 1))).toBe(refusal);
  });
  function fail(): never {
    throw refusal;
  }

  it.each<DistributedLockOptions['onTimeout']>(['skip', () => 'skipped'])('has no say in an outage: %p', async (onTimeout) => {
    class Report {
      bodies = 0;
      @kind.lock({ waitTimeout: 50, onTimeout })
      async write() {
        this.bodies++;
      }
    }
    const store = redisStore({ options: { path: '/nobody/listens/here.sock', disconnectTimeout: 10 }, requestTimeout: 100 });
    const { get } = await bootKind(kind, { providers: [Report] }, { store });
    expect(await reasonOf(get(Report).write())).toBeInstanceOf(StoreError);
    expect(get(Report).bodies).toBe(0);
  });
});
