import { type Lease, LockAbortedError, LockTimeoutError, type UsingOptions } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';

export function fairnessContract(makeStore: MakeStore, kind: Kind): void {
  describe('fair waiters', () => {
    const { open, newKey, driver } = locksOpener(makeStore, kind);
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

    it('go on when the head of the queue gives up in the moment of its turn', async () => {
      const caller = new AbortController();
      const head = await begin('head', { fair: true, signal: caller.signal });
      const next = await begin('next', { fair: true });
      const release = holder.release();
      caller.abort();
      await Promise.all([release, head.settled, next.settled]);
      expect(order.at(-1)).toBe('next');
    });

    it('wait about a second for one ahead that is dead, not for ever', async () => {
      const dead = { key, owner: 'dead', ttl: 60_000, tokens: 1, queue: true };
      expect(await driver().acquire(dead)).toMatchObject({ granted: false });
      const next = await begin('next', { fair: true });
      await holder.release();
      const start = performance.now();
      await next.settled;
      expect(order).toEqual(['next']);
      expect(performance.now() - start).toBeLessThan(4_000);
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

    it('wait like everybody until a minHold is over', async () => {
      await holder.release();
      const start = performance.now();
      holder = await open().acquire(key, { minHold: 300 });
      const fair = await begin('fair', { fair: true });
      await holder.release();
      await fair.settled;
      expect(performance.now() - start).toBeGreaterThanOrEqual(298);
    });
  });
}
