import { MUTEX, SEMAPHORE_OF_ONE, WRITE_LOCK } from '../../contract/kinds.js';
import { eventually } from '../../support/eventually.js';
import { useCluster } from './cluster.setting.js';
import { lockers, entriesOf, queued, woken, wokenChild } from './waiting.js';

/** Each of them is offered the key for a second. */
const CROWD = 2;
const fair = { ...woken, fair: true };

describe('waiters on a Cluster', () => {
  const on = useCluster();
  const { setting } = on;

  const KINDS = [MUTEX, WRITE_LOCK, SEMAPHORE_OF_ONE];
  it.each(KINDS)('of a $name, of several stores, are woken by a release in their order, wherever the key is (G8)', async ({ lockOf }) => {
    const stores = [on.locks(), on.locks(), on.locks()];
    for (const key of on.keys()) {
      let holder = await lockOf(stores[0]!, key).acquire(woken);
      const order: number[] = [];
      const turns = Array.from({ length: 9 }, async (_turn, i) => {
        await queued(setting, key, i);
        const lease = await lockOf(stores[i % 3]!, key).acquire(fair);
        order.push(i);
        return lease;
      });
      await queued(setting, key, 9);
      await eventually(async () => expect(await on.listeners()).toHaveLength(3));
      for (const turn of turns) {
        await holder.release();
        holder = await turn;
      }
      await holder.release();
      expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
      expect(await setting.redis.exists(key, `{${key}}:queue`)).toBe(0);
    }
  });

  it(`behind ${CROWD} fair ones of another process wait for the offers to that one if it was killed (G8)`, async () => {
    const [child] = await lockers(setting, 1, on.where);
    const [locks, others] = [on.locks(), on.locks()];
    const lines = await Promise.all(
      ['order:1', 'order:2', 'page:1', 'page:2'].map(async (key) => {
        const [{ lockOf }, as] = key.startsWith('page') ? ([WRITE_LOCK, 'write'] as const) : [MUTEX];
        const holder = await lockOf(locks, key).acquire(woken);
        for (let i = 0; i < CROWD; i++) child!.send({ type: 'cycle', key, as, options: { ...wokenChild, fair: true } });
        await queued(setting, key, CROWD);
        // Until its queue entry says where its process listens, nobody knows that they are of one process.
        await eventually(async () => (await entriesOf(setting, key)).every((entry) => entry.includes('inbox:cluster:')));
        const next = lockOf(others, key).acquire(woken);
        await queued(setting, key, CROWD + 1);
        return { key, holder, next };
      }),
    );
    await child!.kill();
    for (const { holder } of lines) await holder.release();
    for (const { key, next } of lines) {
      await (await next).release();
      expect(await setting.redis.exists(key, `{${key}}:queue`)).toBe(0);
    }
  });
});
