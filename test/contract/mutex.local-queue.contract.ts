import { passTime } from '../support/virtual-time.js';
import { type AcquireOptions, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { changing, counting } from './misbehaviour.js';
import type { Misbehaviour, OpenOptions } from './open-locks.js';
import { timed } from '../support/rejection.js';
import { renewing } from './renewing.js';
import { patient, type Setting } from './setting.js';

/** How often a key may pass from one caller to the next in a process while another process waits. */
const TURNS = 32;

/** What a process does by itself with a key that many of its callers want. */
export function localQueueContract({ open, newKey, takeAway, isFree }: Setting): void {
  describe('a process whose callers want one key', () => {
    let key: string;
    let locks: Locks;
    beforeEach(() => {
      key = newKey();
      locks = open();
    });

    const callAll = (count: number, body: (lease: Lease, index: number) => unknown, of = locks) =>
      Promise.all(Array.from({ length: count }, (_, index) => of.using(key, (lease) => body(lease, index), patient)));

    /** A holder that may pass its lease on without the store, for as long as a test takes, and the next one, who waits. */
    async function two(options: AcquireOptions, misbehaving?: OpenOptions['misbehaving'], holders: AcquireOptions = {}) {
      const patiently = open({ misbehaving, localQueue: { time: 60_000 } });
      const first = await patiently.acquire(key, { ...patient, ...options });
      const holding = patiently.acquire(key, { ...patient, ...options, ...holders });
      const next = patiently.acquire(key, { ...patient, ...options });
      await first.release();
      return { holder: await holding, next };
    }

    it('hands it over in the order in which they came, with a request for every 32 of them', async () => {
      const { misbehaving, ...requests } = counting('acquire', 'release', 'leave');
      const extending: Misbehaviour = (real) => (real.extend ? { extend: (request) => (requests.asked++, real.extend!(request)) } : {});
      const order: number[] = [];
      const counted = open({ misbehaving: (real) => ({ ...misbehaving(real), ...extending(real) }) });
      await callAll(640, (_lease, index) => order.push(index), counted);
      expect(order).toEqual(Array.from({ length: 640 }, (_, index) => index));
      expect(requests.asked).toBeLessThanOrEqual(2 + 640 / 8);
    });

    it.each([
      [{ handOvers: 2, time: 60_000 }, 2],
      [{ handOvers: 5, time: 60_000 }, 5],
      [{ handOvers: 1 }, 1],
      [{ time: 0 }, 1],
    ])('hands a lease over for as long as localQueue allows: %p', async (localQueue, most) => {
      const owners: string[] = [];
      await callAll(21, ({ owner }) => owners.push(owner), open({ localQueue }));
      const turns = [...new Set(owners)].map((owner) => owners.filter((other) => other === owner).length);
      // The first one came when nobody waited, and reserved one token.
      expect(turns).toEqual([1, ...Array.from({ length: 20 / most }, () => most)]);
    });

    it.each([
      [{ handOvers: 0 }, /"localQueue": "handOvers" must be a whole number from 1 to/],
      [{ handOvers: 1.5 }, /"handOvers" must be/],
      [{ time: -1 }, /"time" must be a whole number from 0/],
      [{ time: Infinity }, /"time" must be/],
      [{ turns: 3 }, /unknown option "turns"/],
      [null, /must be an object/],
    ])('refuses bounds that make no sense: %p', (localQueue, message) => {
      expect(() => open({ localQueue: localQueue as never })).toThrow(message);
    });

    it('gives each of them a fencing token of its own, which only grows, over blocks and to other processes', async () => {
      const others = open();
      const tokens: number[] = [];
      const collect = ({ fencingToken }: Lease) => tokens.push(fencingToken!);
      await Promise.all([callAll(100, collect), callAll(70, collect, others)]);
      tokens.push((await open().acquire(key, patient)).fencingToken!);
      expect(tokens).toHaveLength(171);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    });

    it('shares with a process that wants as much: neither gets more than 32 turns on end', async () => {
      const localQueue = { handOvers: TURNS, time: 60_000 };
      const [one, others] = [open({ localQueue }), open({ localQueue })];
      const history: string[] = [];
      const work = (name: string) => () => {
        history.push(name);
        return passTime(1);
      };
      await Promise.all([callAll(200, work('a'), one), callAll(200, work('b'), others)]);
      const runs = [...history.join('').matchAll(/a+|b+/g)].map(([run]) => run.length);
      // The first run begins before the other process has an entry, the last ones are all that one is left with.
      const firstEnd = Math.max(history.indexOf('a'), history.indexOf('b'));
      expect(firstEnd).toBeLessThan(2 * TURNS + 20);
      const both = Math.min(history.lastIndexOf('a'), history.lastIndexOf('b'));
      let seen = 0;
      for (const [index, run] of runs.entries()) {
        seen += run;
        if (index > 0 && seen <= both) expect(run).toBeLessThanOrEqual(TURNS);
      }
      expect(runs.length).toBeGreaterThan(400 / TURNS / 2);
    });

    it('hands the key to a process that waits after 50 ms of slow turns, however many turns are left', async () => {
      const slow = open({ localQueue: { handOvers: 1_000, time: 50 } });
      const history: string[] = [];
      const ours = callAll(200, () => (history.push('ours'), passTime(5)), slow);
      await eventually(() => history.length > 2);
      await open().using(key, () => history.push('theirs'), patient);
      expect(history.indexOf('theirs')).toBeLessThan(150);
      await ours;
    });

    it('sends the next one to the store when the lease is lost', async () => {
      const holder = await locks.acquire(key, { ...patient, keyTimeout: 3_000 });
      const next = locks.acquire(key, patient);
      await takeAway(holder);
      await eventually(() => holder.signal.aborted);
      const lease = await next;
      expect(lease.owner).not.toBe(holder.owner);
      expect(lease.fencingToken).toBeGreaterThan(holder.fencingToken!);
      lease.assertHeld();
      expect([await holder.release(), await lease.release()]).toEqual([false, true]);
    });

    it('does not hand over a lease that is near its end, but gets a new one', async () => {
      let isSlow = false;
      const misbehaving = changing('acquire', async (send) => {
        const reply: { granted: boolean } = await send();
        if (!isSlow || !reply.granted) return reply;
        isSlow = false;
        await passTime(1_200);
        return reply;
      });
      const slow = open({ misbehaving });
      const options = { ...patient, keyTimeout: 2_000 };
      const holder = await slow.acquire(key, options);
      const [next, afterNext] = [slow.acquire(key, options), slow.acquire(key, options)];
      isSlow = true;
      expect(await holder.release()).toBe(true);
      const short = await next;
      expect(short.remaining()).toBeLessThan(1_000);
      expect(await short.release()).toBe(true);
      const whole = await afterNext;
      expect(whole.remaining()).toBeGreaterThan(1_000);
      expect(whole.owner).not.toBe(short.owner);
    });

    it('does not hand over a lease that is not renewed any more, but gets a new one', async () => {
      const { holder, next } = await two({}, undefined, { maxHold: 50 });
      await eventually(() => holder.signal.aborted);
      await holder.release();
      expect((await next).owner).not.toBe(holder.owner);
    });

    it('notifies the next holder of a lease of the reply to a renewal that was under way', async () => {
      const [asked, answer] = [gate(), gate()];
      let renewals = 0;
      const { holder, next } = await two({ keyTimeout: 3_000 }, () => ({
        renew: renewing(async () => {
          if (++renewals > 1) return 'renewed';
          asked.open();
          await answer.passed;
          return 'lost';
        }),
      }));
      await asked.passed;
      await holder.release();
      const lease = await next;
      expect(lease.owner).toBe(holder.owner);
      answer.open();
      await eventually(() => lease.signal.aborted);
    });

    it.each(['stopWaiting', 'close'] as const)(
      'calls off 500 waiters, for a holder of its own and of another process, by %s',
      async (how) => {
        const [body, started] = [gate(), gate()];
        const work = () => (started.open(), body.passed);
        const holding = locks.using(key, work, { ...patient, onLost: 'ignore' });
        await started.passed;
        const other = newKey();
        const stranger = await open().acquire(other, patient);
        const callers = Array.from({ length: 500 }, (_, index) =>
          locks.acquire(index % 2 ? key : other, { ...patient, fair: index % 10 === 0 }).catch((error: unknown) => error),
        );
        await passTime(50);
        const ended = locks[how]();
        const { result: errors, elapsed } = await timed(() => Promise.all(callers));
        for (const error of errors) expect(error).toMatchObject({ code: 'LOCK_ABORTED', reason: 'shutdown' });
        expect(elapsed).toBeLessThan(100);
        body.open();
        await Promise.all([holding, ended]);
        await stranger.release();
        for (const free of [key, other]) await eventually(() => isFree(free));
      },
    );
  });
}
