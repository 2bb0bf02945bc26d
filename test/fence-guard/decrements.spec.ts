// Four processes, some of them stopped for longer than their lease, on a Redis that loses its data.
import { runDecrements } from './decrements.js';

const COUNT = 4_000;

describe('a stock that four processes decrement under a lock, which is lost again and again', () => {
  it('loses no update with the guard, which refuses late holders', async () => {
    const result = await runDecrements({ count: COUNT, guarded: true });
    expect(result).toMatchObject({ done: COUNT, lost: 0 });
    expect(Math.min(result.refused, result.pauses, result.flushes)).toBeGreaterThan(0);
  });

  it('loses updates without it: the faults do harm', async () => {
    const result = await runDecrements({ count: COUNT, guarded: false });
    expect(result.done).toBe(COUNT);
    expect(result.lost).toBeGreaterThan(0);
  });
});
