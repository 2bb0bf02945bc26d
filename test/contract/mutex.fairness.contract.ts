import { type Lease, LockAbortedError, LockTimeoutError, type UsingOptions } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';

export function fairnessContract(makeStore: MakeStore, kind: Kind): void {
  describe('fair waiters', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    let key: string;
    let holder: Lease;
    let order: string[];

    beforeEach(async () => {
      key = newKey();
      order = [];
      holder = await open().acquire(key, { keyTimeout: 60_000 });
    });

    /** Begins to wait, and has its place in the queue, or has been told that the key is taken if it is not fair, when this resolves. */
    async function begin(name: string, options: UsingOptions, work = async () => undefined as unknown) {
      const waits = gate();
      const hasPlace = (queue: boolean) => queue || !options.fair;
      const locks = open({
        misbehaving: (real) => ({ acquire: (request) => real.acquire(request).finally(() => hasPlace(request.queue) && waits.open()) }),
      });
      const body = () => {
        order.push(name);
        return work();
      };
      const outcome = locks.using(key, body, { keyTimeout: 20_000, waitTimeout: Infinity, retryInterval: 10, ...options });
      const settled = outcome.catch((error: unknown) => error).finally(() => waits.open());
      await waits.passed;
      return { settled };
    }

    it('are served in the order in which they came', async () => {
      const names = ['1', '2', '3', '4', '5', '6'];
      const calls = [];
      for (const name of names) calls.push(await begin(name, { fair: true }));
      await holder.release();
      await Promise.all(calls.map(({ settled }) => settled));
      expect(order).toEqual(names);
    });

    it('go on in order when some in the middle give up, by patience or by abort', async () => {
      const caller = new AbortController();
      const first = await begin('first', { fair: true });
      const impatient = await begin('impatient', { fair: true, waitTimeout: 50 });
      const aborted = await begin('aborted', { fair: true, signal: caller.signal });
      const last = await begin('last', { fair: true });
      caller.abort();
      expect(await impatient.settled).toBeInstanceOf(LockTimeoutError);
      expect(await aborted.settled).toBeInstanceOf(LockAbortedError);
      await holder.release();
      await Promise.all([first.settled, last.settled]);
      expect(order).toEqual(['first', 'last']);
    });

    it('are not overtaken by those who are not fair, nor by newcomers', async () => {
      const end = gate();
      const fair = await begin('fair', { fair: true }, () => end.passed);
      const unfair = await begin('unfair', { retryInterval: 1 });
      await holder.release();
      expect(await open().tryAcquire(key)).toBeNull();
      await eventually(() => order.length > 0);
      end.open();
      await Promise.all([unfair.settled, fair.settled]);
      expect(order).toEqual(['fair', 'unfair']);
    });
  });
}
