import { passTime } from '../support/virtual-time.js';
import { LockAbortedError, LockConfigError, type LeaderElection, type Locks, type Term } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { pause } from '../support/time.js';
import { candidate, elected, untilToldToEnd, waits } from './candidates.js';
import { gate } from '../support/gate.js';
import { heldBy } from './held-by.js';
import { held } from './misbehaviour.js';
import { rejection, timed } from '../support/rejection.js';
import { long, type Setting } from './setting.js';

export function leaderEndsContract({ open, newKey }: Setting, remains: () => Promise<string[]> | string[]): void {
  describe('a candidate', () => {
    let name: string;
    let locks: Locks;
    let election: LeaderElection;
    beforeEach(() => {
      name = newKey();
      locks = open({ shutdownTimeout: 20_000 });
      election = locks.leaderElection(name, long);
    });
    const nobodyLeads = () => eventually(async () => (await open().leaderElection(name).leader()) === null);

    /** Another one that leads, so that ours stands by. */
    const rule = async () => {
      const ruler = candidate(open().leaderElection(name, long));
      await elected(ruler);
      return ruler;
    };
    /** One more that stands by already. */
    const standBy = async () => {
      const other = open();
      const placed = waits(other);
      const next = candidate(other.leaderElection(name, long));
      await placed;
      return next;
    };
    const leave = (caller: AbortController) => ({
      resigns: () => void election.resign(),
      'is called off by its signal': () => caller.abort(new Error('enough')),
      'is called off by stopWaiting': () => locks.stopWaiting(),
    });
    const ways = Object.keys(leave(new AbortController())) as (keyof ReturnType<typeof leave>)[];
    const reasons = { resigns: 'resigned', 'is called off by its signal': 'signal', 'is called off by stopWaiting': 'shutdown' };

    describe.each(ways)('that %s', (way) => {
      let caller: AbortController;
      beforeEach(() => (caller = new AbortController()));

      /** What `run` comes to where its work has not ended while it led. */
      const expectCalledOff = async (running: Promise<unknown>) => {
        if (way === 'resigns') return expect(await running).toBeUndefined();
        expect(await rejection(running)).toBeInstanceOf(LockAbortedError);
        expect(await rejection(running)).toMatchObject({ reason: reasons[way], key: election.key });
        if (caller.signal.aborted) expect(await rejection(running)).toMatchObject({ cause: new Error('enough') });
      };

      it('while it stands by ends at once, and leaves no queue entry behind (G7, G9)', async () => {
        const ruler = await rule();
        const work = jest.fn();
        const placed = waits(locks);
        const running = election.run(work, { signal: caller.signal });
        running.catch(() => undefined);
        await placed;
        leave(caller)[way]();
        await expectCalledOff(running);
        const next = await standBy();
        const { elapsed } = await timed(() => Promise.all([ruler.election.resign(), elected(next)]));
        // An offer to one who has left would last a second.
        expect(elapsed).toBeLessThan(900);
        expect(work).not.toHaveBeenCalled();
      });

      it('while it leads is notified by its term, and leads until its work has ended', async () => {
        const end = gate();
        const held: unknown[] = [];
        const running = election.run(
          async (term) => {
            await untilToldToEnd(term);
            held.push(election.isLeader(), (term.signal.reason as LockAbortedError).reason);
            await end.passed;
            term.assertHeld();
            await locks.using(election.key, (again) => held.push(again.owner === term.owner), { waitTimeout: 0 });
            held.push('last words');
          },
          { signal: caller.signal },
        );
        await eventually(() => election.isLeader());
        const revoked = jest.fn();
        election.on('revoked', revoked);
        const next = await standBy();
        leave(caller)[way]();
        await passTime(50);
        expect(next.terms).toEqual([]);
        expect(revoked).toHaveBeenCalledTimes(1);
        end.open();
        await running;
        expect(held).toEqual([false, reasons[way], true, 'last words']);
        expect(revoked).toHaveBeenCalledTimes(1);
        await elected(next);
        await next.election.resign();
      });

      it.each([
        ['the reason of its signal', ({ signal }: Term) => untilToldToEnd({ signal } as Term).then(() => signal.throwIfAborted())],
        ['what aborted timers throw', ({ signal }: Term) => pause(60_000, undefined, { signal })],
      ])('while it leads counts as called off when its work ends by %s', async (_what, work) => {
        const running = election.run(work, { signal: caller.signal });
        running.catch(() => undefined);
        await eventually(() => election.isLeader());
        leave(caller)[way]();
        await expectCalledOff(running);
      });

      it('while it leads does not hide an error of its work', async () => {
        const running = election.run((term) => untilToldToEnd(term).then(() => Promise.reject(new Error('its own'))), caller);
        running.catch(() => undefined);
        await eventually(() => election.isLeader());
        leave(caller)[way]();
        expect(await rejection(running)).toEqual(new Error('its own'));
      });

      it('while its request is under way is not elected by it, and leaves the key free', async () => {
        const { sent, answer, misbehaving } = held('acquire');
        locks = open({ misbehaving });
        election = locks.leaderElection(name, long);
        const work = jest.fn();
        const running = election.run(work, { signal: caller.signal });
        running.catch(() => undefined);
        await sent;
        leave(caller)[way]();
        answer();
        await expectCalledOff(running);
        expect(work).not.toHaveBeenCalled();
        await nobodyLeads();
      });
    });

    it.each([
      ['of its grant is not elected', () => locks.on('acquired', () => void election.resign())],
      ['in which it is notified that it is elected does no work', () => election.on('elected', () => void election.resign())],
    ])('that resigns in the moment %s', async (_when, resignThen) => {
      resignThen();
      const work = jest.fn();
      expect(await election.run(work)).toBeUndefined();
      expect(work).not.toHaveBeenCalled();
      await nobodyLeads();
    });

    it('can resign in its own work, and waits for nothing there', async () => {
      let wentOn = false;
      await election.run(async (term) => {
        await election.resign();
        expect(term.signal.aborted).toBe(true);
        wentOn = true;
      });
      expect(wentOn).toBe(true);
    });

    it('runs once at a time', async () => {
      const running = candidate(election);
      expect(await rejection(election.run(() => 'again'))).toBeInstanceOf(LockConfigError);
      await elected(running);
      expect(await rejection(election.run(() => 'again'))).toBeInstanceOf(LockConfigError);
      await election.resign();
      const later = jest.fn();
      await election.run(later);
      expect(later).toHaveBeenCalledTimes(1);
    });

    it('asks nothing of the store once its signal has aborted or the locks are closing', async () => {
      const acquire = jest.fn();
      const silent = open({ misbehaving: () => ({ acquire }) });
      expect(await rejection(silent.leaderElection(name).run(() => 1, { signal: AbortSignal.abort() }))).toMatchObject({
        reason: 'signal',
      });
      silent.stopWaiting();
      expect(await rejection(silent.leaderElection(name).run(() => 1))).toMatchObject({ reason: 'shutdown' });
      await silent.close();
      expect(await rejection(silent.leaderElection(name).leader())).toMatchObject({ reason: 'shutdown' });
      expect(acquire).not.toHaveBeenCalled();
    });

    it('ends with its Locks: close waits for the work that heeds its term, and not longer than shutdownTimeout for one that does not', async () => {
      const heeding = candidate(election);
      await elected(heeding);
      await locks.close();
      expect(await heeding.outcome).toBeUndefined();
      const hasty = open({ shutdownTimeout: 100 });
      const end = gate();
      let term: Term | undefined;
      const deaf = hasty.leaderElection(name, long).run((of) => {
        term = of;
        return end.passed;
      });
      deaf.catch(() => undefined);
      await eventually(() => term !== undefined);
      await hasty.close();
      expect(term!.remaining()).toBe(0);
      expect(await open().leaderElection(name).leader()).toBeNull();
      end.open();
      expect(await rejection(deaf)).toMatchObject({ name: 'LockAbortedError', reason: 'shutdown' });
    });

    it('leaves nothing behind, however it ended (G7)', async () => {
      const ruler = await rule();
      const caller = new AbortController();
      const added = jest.spyOn(caller.signal, 'addEventListener');
      const removed = jest.spyOn(caller.signal, 'removeEventListener');
      const placed = waits(locks);
      const standby = election.run(() => undefined, { signal: caller.signal });
      await placed;
      await election.resign();
      await standby;
      expect(added.mock.calls.length).toBeGreaterThan(0);
      expect(removed).toHaveBeenCalledTimes(added.mock.calls.length);
      await ruler.election.resign();
      await election.run(() => undefined);
      expect(heldBy(locks)).toBe(0);
      await eventually(async () => expect((await remains()).filter((entry) => entry.includes(name))).toEqual([]));
    });
  });
}
