import { type ExtendReply, type ExtendRequest, type Lease, type LeaseDriver, LockLostError } from 'nestjs-distributed-lock/core';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, where } from './open-locks.js';
import { outage } from './store-failures.js';
import { pause } from '../support/time.js';

/** How often a key may pass from one caller to the next in a process while another process waits. */
const TURNS = 32;
const CALLERS = 200;
/** What ends the turns of a process: their number, or the time. A quarter of it is long for a store, also on a busy machine. */
const BY_NUMBER = { localQueue: { handOvers: TURNS, time: 60_000 }, sections: 2 };
const BY_TIME = { localQueue: { handOvers: 100_000, time: 100 }, sections: 2 };
const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** A process goes on passing a key on among its callers for as long as nobody else wants it, without a wait for the store. */
export function turnsContract(makeStore: MakeStore, kind: Kind): void {
  const { open, newKey } = locksOpener(makeStore, kind);

  describe('a process whose callers want a key that nobody else wants', () => {
    const replies: (ExtendReply | undefined)[] = [];
    const unknown: string[] = [];

    beforeEach(() => void [replies, unknown].forEach((list) => list.splice(0)));

    /** In how many tenures they had it, where an acquire takes long, but for the first two, and the answer to an extension a little. */
    async function tenuresOf(
      { localQueue, sections }: typeof BY_NUMBER,
      extend: (real: LeaseDriver, request: ExtendRequest) => Promise<ExtendReply>,
    ): Promise<number> {
      let acquires = 0;
      const locks = open({
        misbehaving: (real) => ({
          async acquire(request) {
            if (++acquires > 2) await pause(100);
            return real.acquire(request);
          },
          async extend(request) {
            await pause(3);
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
        await pause(sections);
        lease.assertHeld();
        inside--;
      };
      await Promise.all(Array.from({ length: CALLERS }, () => locks.using(key, work, patient)));
      expect(tokens).toHaveLength(CALLERS);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      return owners.size;
    }

    where(makeStore, 'extend', () => {
      it.each([
        ['number', BY_NUMBER],
        ['time', BY_TIME],
      ])('asks for more turns before they are over by their %s, so that nobody waits for the answer', async (_what, limits) => {
        const tenures = await tenuresOf(limits, (real, request) => real.extend!(request));
        // That of the first one, who came when nobody waited, and that of all others; one more wherever the machine stood still for too long.
        expect(tenures).toBeLessThanOrEqual(4);
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
              await pause(5);
              return reply;
            },
          }),
          localQueue: { handOvers: TURNS, time: 60_000 },
        });
        locks.on('acquired', ({ attempts }) => (turns = attempts > 0 ? 1 : turns + 1));
        const key = newKey();
        const work = async (): Promise<void> => {
          most = Math.max(most, turns);
          await pause(1);
        };
        await Promise.all(Array.from({ length: CALLERS }, () => locks.using(key, work, patient)));
        expect(most).toBeGreaterThanOrEqual(TURNS / 2);
        expect(most).toBeLessThanOrEqual(TURNS);
      });
    });

    it.each([
      ['without an answer, which it says,', () => Promise.reject(outage()), ['renew']],
      ['when it is told that others want it', () => Promise.resolve('wanted' as const), []],
    ])('goes on as before %s: it asks when its turns are over', async (_what, extend, said) => {
      expect(await tenuresOf(BY_NUMBER, extend)).toBeGreaterThanOrEqual(CALLERS / TURNS);
      expect([...new Set(unknown)]).toEqual(said);
    });

    it('asks for all its turns when it has had some, also for a single caller: more will come', async () => {
      const asked: number[] = [];
      const locks = open({
        misbehaving: (real) => ({
          acquire(request) {
            asked.push(request.tokens);
            return real.acquire(request);
          },
        }),
        localQueue: { handOvers: TURNS },
      });
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

    it('gets the key anew when it is told that the tenure is lost', async () => {
      const losses: unknown[] = [];
      // The budget of the second tenure suffices, however slow the machine is.
      const localQueue = { handOvers: TURNS, time: 60_000 };
      const locks = open({ localQueue, misbehaving: () => ({ extend: () => Promise.resolve('lost' as const) }) });
      locks.on('lost', ({ error }) => losses.push(error));
      const key = newKey();
      // The store knows better: the next one waits until the lease has run out there.
      const options = { ...patient, keyTimeout: 300, retryInterval: 50 };
      const outcomes = await Promise.all(
        Array.from({ length: TURNS + 10 }, () => locks.using(key, () => pause(1), options).catch((error: unknown) => error)),
      );
      const failures = outcomes.filter((outcome) => outcome !== undefined);
      expect(failures).toHaveLength(1);
      expect(failures[0]).toBeInstanceOf(LockLostError);
      expect(losses).toHaveLength(1);
    });
  });
}
