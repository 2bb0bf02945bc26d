import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

describe('a multi-lock', () => {
  it('is made of the locks of another copy of the package too, also of its multi-locks', async () => {
    const store = memoryStore();
    let other!: Locks;
    await jest.isolateModulesAsync(async () => {
      const copy = await import('nestjs-distributed-lock/core');
      other = new copy.Locks(store);
    });
    const all = new Locks(store).multiLock(['a', other.mutex('b'), other.multiLock(['c', 'b'])]);
    await all.using(async (lease) => {
      expect(lease.key).toBe('a, b, c');
      for (const key of ['a', 'b', 'c']) expect(await other.tryAcquire(key, { reentrant: false })).toBeNull();
    });
    await other.close();
  });
});
