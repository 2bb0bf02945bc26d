import { Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { pause } from '../support/time.js';
import { deadlocks, free, oldest, show, watch } from './operate.js';

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

  it('prints what happens to keys until the signal aborts', async () => {
    const ends = new AbortController();
    const watched = watch(locks, ends.signal);
    const other = new Locks(locks.store, { app: 'worker', logger: false });
    for (const end = Date.now() + 600; Date.now() < end;) await other.using('order:7', () => pause(20), { label: 'OrderService.pay' });
    await pause(300);
    ends.abort();
    expect(new Set(await watched)).toEqual(
      new Set(['acquired', 'released'].map((event) => `order:7: ${event}, OrderService.pay of worker:${process.pid}`)),
    );
    await other.close();
  });
});
