import '../support/virtual-time.js';
import { type Lease, LockAbortedError, LockTimeoutError, type UsingOptions } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { timersLeft } from './timers-left.js';
import { deaf } from './misbehaviour.js';
import { rejection, timed } from '../support/rejection.js';
import { patient, type Setting } from './setting.js';

/** How a key passes from one process to another. A test that takes longer than some seconds fails: the next poll would come after a minute. */
export function handOverContract({ open, newKey, driver, waiter, isFree, where }: Setting): void {
  let key: string;
  beforeEach(() => (key = newKey()));

  describe('G8 a waiter proceeds', () => {
    it.each([false, true])('at once on a release, though its next poll comes only after a minute (fair: %p)', async (fair) => {
      const holder = await open().acquire(key, patient);
      const next = await waiter(key, { fair });
      await holder.release();
      const lease = await next.lease;
      lease.assertHeld();
      expect(lease.fencingToken).toBeGreaterThan(holder.fencingToken!);
      expect(lease.owner).toBe(next.owner);
    });

    it.each([60_000, 30_000])(
      'or not, if a listener to the holder’s release calls it off: the key is free (keyTimeout: %d)',
      async (keyTimeout) => {
        const locks = open();
        const holder = await locks.acquire(key, patient);
        const caller = new AbortController();
        const options = { ...patient, keyTimeout, signal: caller.signal };
        // With two waiters, tokens for hand-overs are reserved.
        const calls = [locks.acquire(key, options), locks.acquire(key, options)].map(rejection);
        locks.on('released', () => caller.abort());
        expect(await holder.release()).toBe(true);
        await Promise.all(calls);
        await eventually(() => isFree(key));
      },
    );

    it('or not, if a listener to its wait calls it off: no timer of its wait timeout stays', async () => {
      const locks = open();
      const holder = await locks.acquire(key, patient);
      const caller = new AbortController();
      locks.on('waiting', () => caller.abort());
      // No other timer of the test is as long.
      const timers = timersLeft(70_000);
      await rejection(locks.acquire(key, { ...patient, waitTimeout: 77_777, signal: caller.signal }));
      expect(timers()).toEqual([]);
      jest.restoreAllMocks();
      await holder.release();
    });

    it('at once when the one ahead gives up, whether before the hand-over or during it', async () => {
      const holder = await open().acquire(key, patient);
      const callers = [new AbortController(), new AbortController()];
      const ahead = [await waiter(key, { signal: callers[0]!.signal }), await waiter(key, { signal: callers[1]!.signal })];
      const outcomes = ahead.map(({ lease }) => lease.then((granted) => granted.release()).catch((error: unknown) => error));
      const next = await waiter(key);
      callers[0]!.abort();
      const release = holder.release();
      callers[1]!.abort();
      await Promise.all([release, ...outcomes]);
      (await next.lease).assertHeld();
    });

    where('wakeUps', () => {
      it('at once also when its wake-up overtakes the reply by which it learns that it waits', async () => {
        const holder = await open().acquire(key, patient);
        const [isQueued, woke] = [gate(), gate()];
        const slow = open({
          misbehaving: (real) => ({
            async acquire(request) {
              const reply = await real.acquire(request);
              if (!request.queue || reply.granted) return reply;
              isQueued.open();
              await woke.passed;
              return reply;
            },
            wakeUps: {
              get isOpen() {
                return real.wakeUps!.isOpen;
              },
              open: (warn) => real.wakeUps!.open(warn),
              listen: (owner, wake) => real.wakeUps!.listen(owner, () => [wake(), woke.open()]),
            },
          }),
        });
        const lease = slow.acquire(key, patient);
        await isQueued.passed;
        await holder.release();
        await woke.passed;
        (await lease).assertHeld();
      });
    });

    it('when the lease of a holder that died has run out', async () => {
      await driver().acquire({ key, owner: 'dead', ttl: 500, tokens: 1, queue: false });
      const { elapsed } = await timed(async () => (await waiter(key)).lease);
      expect(elapsed).toBeLessThan(500 + 2_000);
    });

    it('when the minHold of the one before is over', async () => {
      const holder = await open().acquire(key, { ...patient, minHold: 400 });
      const next = await waiter(key);
      const { elapsed } = await timed(() => Promise.all([holder.release(), next.lease]));
      expect(elapsed).toBeGreaterThan(350);
      expect(elapsed).toBeLessThan(400 + 2_000);
    });

    it('within two retryIntervals when its wake-up is lost', async () => {
      const holder = await open().acquire(key, patient);
      const next = await waiter(key, { retryInterval: 300 }, deaf);
      const { elapsed } = await timed(() => Promise.all([holder.release(), next.lease]));
      expect(elapsed).toBeLessThanOrEqual(2 * 300 + 50);
    });
  });

  describe('fair waiters', () => {
    let holder: Lease;
    let order: string[];
    beforeEach(async () => {
      order = [];
      holder = await open().acquire(key, patient);
    });

    /** Begins to wait; it has its queue entry when this resolves, or knows that the key is taken if it is not fair. */
    async function begin(name: string, options: UsingOptions, work = async () => undefined as unknown) {
      const waits = gate();
      const locks = open({
        misbehaving: (real) => ({
          acquire: (request) => real.acquire(request).finally(() => (request.queue || !options.fair) && waits.open()),
        }),
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

    it('are served in the order in which they came, also when some in the middle give up', async () => {
      const caller = new AbortController();
      const names = ['1', '2', '3', '4'];
      const calls = [];
      for (const name of names) calls.push(await begin(name, { fair: true }));
      const impatient = await begin('impatient', { fair: true, waitTimeout: 50 });
      const aborted = await begin('aborted', { fair: true, signal: caller.signal });
      calls.push(await begin('last', { fair: true }));
      caller.abort();
      expect(await impatient.settled).toBeInstanceOf(LockTimeoutError);
      expect(await aborted.settled).toBeInstanceOf(LockAbortedError);
      await holder.release();
      await Promise.all(calls.map(({ settled }) => settled));
      expect(order).toEqual([...names, 'last']);
    });

    it('are not overtaken by callers that are not fair, nor by newcomers', async () => {
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
