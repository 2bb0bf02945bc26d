import { Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { deadlocks, free, oldest, show } from './operate.js';

describe('docs/operate.md', () => {
  const locks = new Locks(memoryStore(), { app: 'shop', logger: false });
  afterAll(() => locks.close());

  it('shows who holds a key, and who waits', async () => {
    const lease = await locks.acquire('order:42', { label: 'OrderService.pay' });
    const waits = locks.acquire('order:42', { waitTimeout: Infinity });
    expect(await show(locks)).toEqual([
      expect.stringMatching(/^mutex, held by shop@\S+ \(OrderService\.pay\) since 20\d\d-/),
      expect.stringMatching(/^waits: shop@\S+:\d+, 1 callers$/),
    ]);
    expect(await oldest(locks)).toEqual([]);
    expect(await deadlocks(locks)).toEqual([]);
    const freed = free(locks);
    await eventually(() => lease.signal.aborted);
    await lease.release();
    expect(await freed).toEqual({ outcome: 'gave back', holder: lease.owner });
    await (await waits).release();
  });
});
