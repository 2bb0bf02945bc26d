import { Locks } from '../../lib/core.js';
import { memoryStore } from '../../lib/stores/memory/memory.store.js';
import { eventually } from '../support/eventually.js';

describe('the watchdog', () => {
  it('renews on after a test has thrown a fake clock away with its timer', async () => {
    const locks = new Locks(memoryStore(), { logger: false });
    jest.useFakeTimers();
    await locks.acquire('faked', { keyTimeout: 600 });
    jest.useRealTimers();
    const start = performance.now();
    await eventually(() => performance.now() - start > 100);
    const lease = await locks.acquire('real', { keyTimeout: 600 });
    await eventually(() => performance.now() - start > 1_500);
    expect(lease.remaining()).toBeGreaterThan(0);
    await locks.close();
  });

  it('renews under each fake clock, though all begin at 0', async () => {
    for (let test = 0; test < 3; test++) {
      jest.useFakeTimers();
      const locks = new Locks(memoryStore(), { logger: false });
      const lease = await locks.acquire('faked', { keyTimeout: 10_000 });
      await jest.advanceTimersByTimeAsync(test === 2 ? 60_000 : 100);
      expect(lease.remaining()).toBeGreaterThan(5_000);
      jest.useRealTimers();
    }
  });
});
