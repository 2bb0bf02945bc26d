import { passTime } from '../support/virtual-time.js';
import type { ExtendReply, ExtendRequest, Lease, LeaseDriver, LockEvents, Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from '../support/gate.js';
import { changing, outage } from './misbehaviour.js';
import type { OpenOptions } from './open-locks.js';
import { patient, type Setting } from './setting.js';

/** How often a key may pass from one caller to the next in a process while another process waits. */
const TURNS = 32;
const CALLERS = 200;
/** What ends the turns of a process: their number, or the time. */
const BY_NUMBER = { handOvers: TURNS, time: 60_000 };
const BY_TIME = { handOvers: 100_000, time: 100 };

/** A process goes on handing a key over among its callers for as long as nobody else wants it, without a wait for the store. */
export function turnsContract({ open, newKey, where }: Setting): void {
  describe('a process whose callers want a key that nobody else wants', () => {
    const replies: (ExtendReply | undefined)[] = [];
    const unknown: string[] = [];
    beforeEach(() => void [replies, unknown].forEach((list) => list.splice(0)));

    /** In how many tenures they had it, where an acquire takes long, but for the first two, and the answer to an extension a little. */
    async function tenuresOf(
      localQueue: typeof BY_NUMBER,
      extend: (real: LeaseDriver, request: ExtendRequest) => Promise<ExtendReply>,
    ): Promise<number> {
      let acquires = 0;
      const slow = changing('acquire', (send) => (++acquires > 2 ? passTime(100).then(send) : send()));
      const locks = open({
        misbehaving: (real) => ({
          ...slow(real),
          async extend(request) {
            await passTime(3);
            const reply = await extend(real, request);
            replies.push(reply);
            return reply;
          },
        }),
        localQueue,
      });
      locks.on('unknown', ({ operation }) => unknown.push(operation));
      const key = newKey();
      const tokens: number[] = [];
      const owners = new Set<string>();
      let inside = 0;
      const work = async (lease: Lease): Promise<void> => {
        expect(++inside).toBe(1);
        owners.add(lease.owner);
        tokens.push(lease.fencingToken!);
        await passTime(2);
        lease.assertHeld();
        inside--;
      };
      await Promise.all(Array.from({ length: CALLERS }, () => locks.using(key, work, patient)));
      expect(tokens).toHaveLength(CALLERS);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      return owners.size;
    }

    where('extend', () => {
      it.each([
        ['number', BY_NUMBER],
        ['time', BY_TIME],
      ])('asks for more turns before they are over by their %s, so that nobody waits for the answer', async (_what, limits) => {
        const tenures = await tenuresOf(limits, (real, request) => real.extend!(request));
        // That of the first one, who came when nobody waited, and that of all others.
        expect(tenures).toBe(2);
        expect(replies.length).toBeGreaterThanOrEqual(3);
      });

      it('counts the turns of an answer from when it asked', async () => {
        let asked = 0;
        let turns = 0;
        let most = 0;
        const locks = open({
          misbehaving: (real) => ({
            async extend(request) {
              // Of one answer only: another would come before its turns are over.
              if (asked++ > 0) return 'wanted';
              turns = 0;
              const reply = await real.extend!(request);
              await passTime(5);
              return reply;
            },
          }),
          localQueue: BY_NUMBER,
        });
        locks.on('acquired', ({ attempts }) => (turns = attempts > 0 ? 1 : turns + 1));
        const key = newKey();
        const work = async (): Promise<void> => {
          most = Math.max(most, turns);
          await passTime(1);
        };
        await Promise.all(Array.from({ length: CALLERS }, () => locks.using(key, work, patient)));
        expect(most).toBeGreaterThanOrEqual(TURNS / 2);
        expect(most).toBeLessThanOrEqual(TURNS);
      });
    });

    it.each([
      ['without an answer, which it says,', () => Promise.reject(outage()), ['renew']],
      ['when the answer is that others want it', () => Promise.resolve('wanted' as const), []],
    ])('goes on as before %s: it asks when its turns are over', async (_what, extend, said) => {
      expect(await tenuresOf(BY_NUMBER, extend)).toBeGreaterThanOrEqual(CALLERS / TURNS);
      expect([...new Set(unknown)]).toEqual(said);
    });

    it('asks for all turns when it has had some, also for a single caller: more will come', async () => {
      const asked: number[] = [];
      const misbehaving = (real: LeaseDriver) => ({
        acquire: (request: Parameters<LeaseDriver['acquire']>[0]) => (asked.push(request.tokens), real.acquire(request)),
      });
      const locks = open({ misbehaving, localQueue: { handOvers: TURNS } });
      const key = newKey();
      for (const round of [1, 2]) {
        // Alone, it has one turn, which is over when the other one comes.
        const first = await locks.acquire(key, patient);
        const second = locks.acquire(key, patient);
        await first.release();
        await (await second).release();
        expect(asked).toHaveLength(2 * round);
      }
      expect(asked).toEqual([1, TURNS, 1, TURNS]);
    });

    it('acquires the key again when the tenure is lost', async () => {
      const losses: unknown[] = [];
      const locks = open({ localQueue: BY_NUMBER, misbehaving: () => ({ extend: async () => 'lost' }) });
      locks.on('lost', ({ error }) => losses.push(error));
      const key = newKey();
      // The store knows better: the next one waits until the lease has run out there.
      const options = { ...patient, keyTimeout: 300, retryInterval: 50 };
      const outcomes = await Promise.allSettled(Array.from({ length: TURNS + 10 }, () => locks.using(key, () => passTime(1), options)));
      const failures = outcomes.filter(({ status }) => status === 'rejected');
      expect(failures).toMatchObject([{ reason: { name: 'LockLostError' } }]);
      expect(losses).toHaveLength(1);
    });
  });
}

/** Notifications of a key that the store has lost, although the callers of a process hand it over without a release. */
export function yieldContract({ open, newKey, takeAway, where }: Setting): void {
  describe('G4 a process is notified of a key that the store has lost', () => {
    let key: string;
    let losses: LockEvents['lost'][];
    beforeEach(() => {
      key = newKey();
      losses = [];
    });

    const openHeard = (options?: OpenOptions): Locks => {
      const locks = open(options);
      locks.on('lost', (event) => losses.push(event));
      return locks;
    };

    it('by the request that gives the turns of its callers up, and says so for the one who had the last of them', async () => {
      const locks = openHeard({ localQueue: { handOvers: 1 } });
      const holder = await locks.acquire(key, patient);
      const next = locks.acquire(key, patient);
      await takeAway(holder);
      const stranger = await open().acquire(key, patient);
      // It does not wait for that request.
      expect(await holder.release()).toBe(true);
      await eventually(() => losses.length > 0);
      expect(losses).toEqual([expect.objectContaining({ key, owner: holder.owner, afterRelease: true })]);
      await stranger.release();
      const lease = await next;
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
      expect(losses).toHaveLength(1);
    });

    it('and not by one that is repeated: the first may have been applied', async () => {
      let yields = 0;
      const locks = openHeard({
        localQueue: { handOvers: 1 },
        misbehaving: (real) => ({
          async acquire(request) {
            const reply = await real.acquire(request);
            if (request.yields && ++yields === 1) throw outage();
            return reply;
          },
        }),
      });
      const holder = await locks.acquire(key, patient);
      const next = locks.acquire(key, patient);
      await holder.release();
      await (await next).release();
      expect(yields).toBe(2);
      expect(losses).toEqual([]);
    });

    it('by the next renewal, which ends the lease of the one who has it by then', async () => {
      const locks = openHeard({ localQueue: { time: 60_000 } });
      const first = await locks.acquire(key, patient);
      const [second, third, fourth] = [0, 1, 2].map(() => locks.acquire(key, patient));
      await first.release();
      const holder = await second!;
      await takeAway(holder);
      await holder.release();
      const present = await third!;
      expect(present.owner).toBe(holder.owner);
      await expect(present.renew()).rejects.toMatchObject({ code: 'LOCK_LOST' });
      expect(losses.map(({ owner }) => owner)).toEqual([holder.owner]);
      expect(await present.release()).toBe(false);
      await (await fourth!).release();
    });

    where('extend', () => {
      it('by a request for more turns, which ends the lease of the one who has it by then', async () => {
        const [asked, answer] = [gate(), gate()];
        const locks = openHeard({
          localQueue: { time: 60_000, handOvers: 4 },
          misbehaving: (real) => ({
            async extend(request) {
              asked.open();
              await answer.passed;
              return real.extend!(request);
            },
          }),
        });
        const first = await locks.acquire(key, patient);
        const others = Array.from({ length: 6 }, () => locks.acquire(key, patient));
        await first.release();
        for (const lease of others.slice(0, 2)) await (await lease).release();
        await asked.passed;
        const present = await others[2]!;
        await takeAway(present);
        answer.open();
        await eventually(() => present.signal.aborted);
        expect(losses.map(({ owner }) => owner)).toEqual([present.owner]);
        expect(await present.release()).toBe(false);
        for (const lease of others.slice(3)) await (await lease).release();
      });
    });
  });
}
