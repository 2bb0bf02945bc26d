import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { boot } from './boot.js';

class Job {
  @DistributedLock({ value: 'job', keyTimeout: 60_000 })
  async run() {
    const lease = currentLease();
    lease?.assertHeld();
    return { lease, isAborted: lease?.signal.aborted, left: lease?.remaining(), inner: await this.inner() };
  }
  @DistributedLock({ value: 'job', waitTimeout: 0 })
  async inner() {
    return currentLease();
  }
}

it('currentLease() is the lease of the method: its key, owner, token, signal and time left, which a nested call shares', async () => {
  const { get, store } = await boot({ providers: [Job] });
  const states: unknown[] = [];
  const acquire = jest.spyOn(store.mutex, 'acquire');
  const [first, second] = [await get(Job).run(), await get(Job).run()];
  for (const [index, { lease, isAborted, left, inner }] of [first, second].entries()) {
    const { owner } = acquire.mock.calls[index]![0];
    expect([lease?.key, lease?.owner, isAborted]).toEqual(['job-locks', owner, false]);
    expect([inner?.owner, inner?.fencingToken]).toEqual([owner, lease?.fencingToken]);
    expect(left).toBeGreaterThan(30_000);
    states.push(inner === lease);
  }
  expect(states).toEqual([false, false]);
  expect(first.lease?.fencingToken).toBeLessThan(second.lease!.fencingToken!);
  expect(currentLease()).toBeUndefined();
});
