// What operators see and do on a Cluster, of processes of their own, which listen at any of its nodes.
import { eventually } from '../../support/eventually.js';
import { useCluster } from './cluster.setting.js';
import type { InspectMessage } from './inspect.child.js';
import { woken } from './waiting.js';

describe('operators of a Cluster', () => {
  const on = useCluster();
  const { setting } = on;
  const keys = () => on.cluster.masters.flatMap((node) => on.cluster.keysOn(node, 2));

  const worker = async (key: string) => {
    const args = { connection: on.where, key, keyTimeout: 60_000, isStubborn: false };
    const child = await setting.fork<InspectMessage>('inspect.child.ts', args);
    return { child, key, ...(await child.waitFor('works', { within: 30_000 })) };
  };

  it('are told what each process does, see what happens, and get keys back from their holders', async () => {
    const workers = await Promise.all(keys().map(worker));
    const locks = on.locks();
    for (const { key, owner, child } of workers) {
      // A process may open its inbox just now, or be too slow for the time that answers may take.
      await eventually(
        async () => {
          const { holders } = await locks.inspect(key);
          expect(holders).toMatchObject([{ owner, pid: child.pid, told: { label: 'Worker.work' } }]);
        },
        { within: 10_000 },
      );
    }
    const end = new AbortController();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const event of locks.watch({ pattern: '*', signal: end.signal })) seen.push(`${event.event} ${event.key}`);
    })();
    for (const { key, owner, child } of workers) {
      expect(await locks.forceRelease(key, { reason: 'stuck', by: 'jane' })).toEqual({ outcome: 'gave back', holder: owner });
      expect(await child.waitFor('ended')).toMatchObject({ result: 'aborted' });
    }
    await eventually(() => expect(seen.sort()).toEqual(expect.arrayContaining(keys().map((key) => `released ${key}`))), { within: 10_000 });
    end.abort();
    await watching;
  });

  it('see waiters as heard, since no node knows who listens at the others', async () => {
    const [holder, waiter] = [on.locks(), on.locks()];
    for (const key of keys()) {
      const lease = await holder.acquire(key, woken);
      const next = waiter.acquire(key, { ...woken, fair: true });
      await eventually(async () => {
        const { waiters } = await holder.inspect(key);
        expect(waiters).toMatchObject([{ isHeard: true }]);
      });
      await lease.release();
      await (await next).release();
    }
  });
});
