import { passTime } from '../support/virtual-time.js';
import { LockLostError, type Locks, type Term } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { pause, standStill } from '../support/time.js';
import { candidate, elected, untilToldToEnd } from './candidates.js';
import { gate } from '../support/gate.js';
import { long, type Setting } from './setting.js';

export function leaderLossContract({ open, newKey, takeAway, lose }: Setting): void {
  describe('a term', () => {
    const warn = jest.fn();
    let name: string;
    let locks: Locks;
    beforeEach(() => {
      warn.mockClear();
      name = newKey();
      locks = open({ logger: { warn, error: warn } });
    });

    const warned = () => warn.mock.calls.flat().filter((message: string) => message.includes('failed when the term had ended'));
    it('that is lost ends at once, before its work does; then the candidate campaigns again (G3)', async () => {
      const election = locks.leaderElection(name, long);
      const told: string[] = [];
      election.on('elected', ({ fencingToken }) => told.push(`elected ${fencingToken}`));
      election.on('revoked', ({ fencingToken }) => told.push(`revoked ${fencingToken} ${election.isLeader()}`));
      const end = gate();
      const seen: Term[] = [];
      const running = election.run(async (term) => {
        seen.push(term);
        if (seen.length === 1) await end.passed;
      });
      await eventually(() => seen.length === 1);
      const first = seen[0]!;
      expect(await lose(first)).toBeInstanceOf(LockLostError);
      expect(first.signal.reason).toBeInstanceOf(LockLostError);
      expect(election.isLeader()).toBe(false);
      expect(() => first.assertHeld()).toThrow(LockLostError);
      expect(told).toEqual([`elected ${first.fencingToken}`, `revoked ${first.fencingToken} false`]);
      // Another candidate may lead meanwhile; here there is none, and the work of the first term still runs.
      await passTime(50);
      expect(seen).toHaveLength(1);
      end.open();
      await running;
      expect(seen).toHaveLength(2);
      const second = seen[1]!;
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken!);
      expect(told.slice(2)).toEqual([`elected ${second.fencingToken}`, `revoked ${second.fencingToken} false`]);
    });

    type Act = (term: Term) => unknown;
    const nothing: Act = () => undefined;
    const fail: Act = () => Promise.reject(new Error('refused by the fence'));
    it.each<[string, Act, string, Act, warnings: number]>([
      ['is lost', lose, 'nothing', nothing, 0],
      ['is lost', lose, 'an error of its own', fail, 1],
      ['is lost', lose, 'the reason of its signal', (term) => Promise.reject(term.signal.reason as Error), 0],
      ['is lost', lose, 'what aborted timers throw', ({ signal }) => pause(60_000, undefined, { signal }), 0],
      ['shows its loss only at its end', takeAway, 'nothing', nothing, 0],
      ['shows its loss only at its end', takeAway, 'an error of its own', fail, 1],
    ])('that %s has its work called again, with a warning where that ended with an error of its own', async (...row) => {
      const [, take, , end, warnings] = row;
      let calls = 0;
      const told: unknown[] = [];
      const running = locks.leaderElection(name, long).run(async (term) => {
        if (++calls > 1) return;
        told.push(await take(term));
        await end(term);
      });
      await running;
      expect(calls).toBe(2);
      expect(told).toEqual([take === lose ? expect.any(LockLostError) : 'released']);
      expect(warned()).toHaveLength(warnings);
    });

    it('that ran out while the process stood still is over for the first one that asks, and says so on the next turn (G3)', async () => {
      const election = locks.leaderElection(name, { keyTimeout: 300 });
      const seen: unknown[] = [];
      const running = election.run(async (term) => {
        if (seen.length > 0) return;
        standStill(400);
        seen.push(election.isLeader(), term.remaining());
        await passTime(1);
        seen.push(term.signal.aborted);
      });
      await running;
      expect(seen).toEqual([false, 0, true]);
    });

    it('that ran out before its work could begin is none: no listener is called', async () => {
      // It stands still between the grant and its work, once.
      const late = open();
      const forget = late.on('acquired', () => {
        forget();
        standStill(400);
      });
      const election = late.leaderElection(name, { keyTimeout: 300, retryInterval: 20 });
      const told = jest.fn();
      election.on('elected', told);
      await election.run((term) => expect(term.remaining()).toBeGreaterThan(0));
      expect(told).toHaveBeenCalledTimes(1);
    });

    it('that is over its maxHold goes to the next one, and its candidate to the end of the queue', async () => {
      const history: string[] = [];
      const [a, b] = ['a', 'b'].map((id) => candidate(open().leaderElection(name, { ...long, maxHold: 100 }), history, id));
      await eventually(() => history.length >= 6);
      expect(history.slice(0, 6).join('')).toMatch(/^(ab){3}|(ba){3}$/);
      for (const each of [a!, b!]) expect(each.terms[0]!.signal.reason).toBeInstanceOf(LockLostError);
      await Promise.all([a!.election.resign(), b!.election.resign()]);
    });

    it('that its own work releases is over, though the work goes on', async () => {
      const election = locks.leaderElection(name, long);
      const revoked = jest.fn();
      election.on('revoked', revoked);
      let wentOn = false;
      await election.run(async (term) => {
        expect(await term.release()).toBe(true);
        expect(election.isLeader()).toBe(false);
        expect(revoked).toHaveBeenCalledTimes(1);
        const next = candidate(open().leaderElection(name, long));
        await elected(next);
        await next.election.resign();
        wentOn = true;
      });
      expect(wentOn).toBe(true);
      expect(revoked).toHaveBeenCalledTimes(1);
    });

    it('that is lost when it is to end is not followed by another one', async () => {
      const election = locks.leaderElection(name, long);
      const end = gate();
      const work = jest.fn(async (term: Term) => {
        await untilToldToEnd(term);
        await end.passed;
        await takeAway(term);
        throw new Error('its own');
      });
      const running = election.run(work);
      await eventually(() => work.mock.calls.length === 1);
      const resigned = election.resign();
      end.open();
      expect(await running).toBeUndefined();
      await resigned;
      expect(work).toHaveBeenCalledTimes(1);
      expect(warned()).toHaveLength(1);
    });
  });
}
