import { passTime } from '../support/virtual-time.js';
import { currentLease, type LeaderElection, LockConfigError, type Locks, StoreError, type Term } from 'nestjs-distributed-lock/core';
import { begunByThen } from '../support/begun-by-then.js';
import { eventually } from '../support/eventually.js';
import { candidate, elected, waits } from './candidates.js';
import { changing, failing, refusal } from './misbehaviour.js';
import { rejection, throwing } from '../support/rejection.js';
import { long, type Setting } from './setting.js';

export function leaderTermsContract({ open, newKey, driver, isFree: isKeyFree, where }: Setting): void {
  describe('a leader', () => {
    let name: string;
    let locks: Locks;
    let election: LeaderElection;
    beforeEach(() => {
      name = newKey();
      locks = open();
      election = locks.leaderElection(name, long);
    });
    const isFree = () => isKeyFree(`${name}-leader`);

    it('does its work once it is elected, and releases the term before its run ends', async () => {
      expect(election.isLeader()).toBe(false);
      let isDone = false;
      const result: unknown = await election.run(async () => {
        expect(election.isLeader()).toBe(true);
        expect(await isFree()).toBe(false);
        isDone = true;
        return 'done';
      });
      expect([isDone, result]).toEqual([true, undefined]);
      expect(election.isLeader()).toBe(false);
      expect(await isFree()).toBe(true);
    });

    it('is the only one: its work cannot run for the same name, and goes on', async () => {
      const led = jest.fn();
      const refusals: unknown[] = [];
      await election.run(async (term) => {
        for (const other of [election, locks.leaderElection(name)]) refusals.push(await rejection(other.run(led)));
        // What it starts leads as well, and another name is another matter.
        refusals.push(await rejection(passTime(1).then(() => locks.leaderElection(name).run(led))));
        await locks.leaderElection(newKey()).run(() => term.assertHeld());
      });
      const waitsForItself = { code: 'LOCK_CONFIG', message: expect.stringContaining('would wait for itself') as string };
      expect(refusals).toMatchObject([{ code: 'LOCK_CONFIG' }, waitsForItself, waitsForItself]);
      expect(led).not.toHaveBeenCalled();
      await locks.leaderElection(name).run(led);
      expect(led).toHaveBeenCalledTimes(1);
    });

    it('does not stand without work', async () => {
      const wrong = { code: 'LOCK_CONFIG', message: expect.stringContaining('the work must be a function') as string };
      expect(await rejection(election.run(undefined as never))).toMatchObject(wrong);
    });

    it.each([
      ['later', () => passTime(1).then(() => Promise.reject(new Error('its own')))],
      ['at once', throwing(new Error('its own'))],
    ])('that fails %s releases the term, and its error comes through (G10)', async (_when, work) => {
      const revoked = jest.fn();
      election.on('revoked', revoked);
      expect(await rejection(election.run(work))).toEqual(new Error('its own'));
      expect(revoked).toHaveBeenCalledTimes(1);
      expect(await isFree()).toBe(true);
    });

    where('wakeUps', () => {
      it.each([
        ['again and again', 50, async (requests: () => number) => void (await eventually(() => requests() > 10))],
        ['no more', 60_000, async (requests: () => number) => (await passTime(1_000), expect(requests()).toBeLessThanOrEqual(3))],
      ])(
        'is looked after by its standbys every two retryIntervals: %s within a second where that is %d ms',
        async (_how, retryInterval, watch) => {
          const leader = candidate(election);
          await elected(leader);
          let requests = 0;
          const others = open({ misbehaving: changing('acquire', (send) => (requests++, send())) });
          const waiting = waits(others);
          const standby = candidate(others.leaderElection(name, { ...long, retryInterval }));
          await waiting;
          await watch(() => requests);
          await Promise.all([standby, leader].map(({ election: each }) => each.resign()));
        },
      );
    });

    it('has a term that is its lease', async () => {
      const before = Date.now();
      await election.run(async (term) => {
        expect(term).toMatchObject({ key: `${name}-leader`, owner: expect.any(String), fencingToken: expect.any(Number) });
        expect(term.signal.aborted).toBe(false);
        expect(term.remaining()).toBeGreaterThan(30_000);
        term.assertHeld();
        expect(currentLease()).toBe(term);
        expect(term.since).toEqual(driver().timeOf?.(term.fencingToken!) ?? null);
        // Server and test share a machine, and so a clock.
        if (term.since) expect(Math.abs(+term.since - before)).toBeLessThan(5_000);
      });
    });

    it('is that of work that begins with its `then`', async () => {
      let found: unknown;
      await election.run((term) => begunByThen(() => void (found = currentLease() === term)));
      expect(found).toBe(true);
    });

    it('is succeeded by the standbys in the order in which they came, also by two of one process', async () => {
      const history: string[] = [];
      const first = candidate(election, history, 'a');
      await elected(first);
      const standbys = [];
      for (const [id, of] of Object.entries({ b: locks, c: open(), d: locks, e: open() })) {
        const placed = waits(of);
        standbys.push(candidate(of.leaderElection(name, long), history, id));
        await placed;
      }
      for (const each of [first, ...standbys]) {
        await elected(each);
        await each.election.resign();
      }
      expect(history).toEqual(['a', 'b', 'c', 'd', 'e']);
    });

    it('is known to all who ask: who, since when, by which token', async () => {
      const observer = open().leaderElection(name);
      expect(await observer.leader()).toBeNull();
      const first = candidate(election);
      const { owner, since, fencingToken } = await elected(first);
      for (const each of [observer, election]) expect(await each.leader()).toEqual({ owner, since, fencingToken });
      const second = candidate(observer);
      await election.resign();
      const next = await elected(second);
      expect(await election.leader()).toEqual({ owner: next.owner, since: next.since, fencingToken: next.fencingToken });
      expect(next.owner).not.toBe(owner);
      await observer.resign();
      expect(await observer.leader()).toBeNull();
    });

    it('is not one whose term is over, though an operator keeps the key', async () => {
      const term = await elected(candidate(election));
      await driver().release({ key: `${name}-leader`, owner: term.owner, keepFor: 60_000 });
      expect(await open().leaderElection(name).leader()).toBeNull();
    });

    it('is not known where the store does not answer, which is an error', async () => {
      const deaf = open({ misbehaving: failing('check') });
      expect(await rejection(deaf.leaderElection(name).leader())).toBeInstanceOf(StoreError);
    });

    it('has its listeners called: for elected before its work, for revoked when it is over', async () => {
      const told: string[] = [];
      let term: Term | undefined;
      const stop = election.on('elected', (of) => {
        term = of;
        told.push(`elected ${election.isLeader()}`);
      });
      election.on('revoked', (of) => told.push(`revoked ${of === term} ${election.isLeader()}`));
      await election.run((of) => told.push(`works ${of === term}`));
      stop();
      await election.run(() => told.push('works'));
      expect(told).toEqual(['elected true', 'works true', 'revoked true false', 'works', 'revoked false false']);
    });

    it('is one that its store lets in: a refusal ends the candidate at once, an outage does not', async () => {
      const refused = open({ misbehaving: failing('acquire', Infinity, refusal) });
      expect(await rejection(refused.leaderElection(name).run(() => 'led'))).toMatchObject({ name: 'StoreError', transient: false });
      const shaky = open({ misbehaving: failing('acquire', 5), defaults: { retryInterval: 20, retryCount: 1, waitTimeout: 0 } });
      const work = jest.fn();
      await shaky.leaderElection(name).run(work);
      expect(work).toHaveBeenCalledTimes(1);
    });

    it('has a name that a key can have', () => {
      for (const wrong of ['', 'a\n', 'x'.repeat(506), 7]) expect(() => locks.leaderElection(wrong as string)).toThrow(LockConfigError);
    });

    it.each([{ minHold: 60_000 }, { maxHold: 1 }])(
      'has the terms of its own options, and of the Locks only how long a lease is: %j',
      async (holds) => {
        const odd = open({ defaults: { keyTimeout: 30_000, ...holds, waitTimeout: 0, fair: false } });
        const holder = await odd.acquire(`${name}-leader`, { minHold: 0, maxHold: 60_000 });
        const placed = waits(odd);
        const standby = candidate(odd.leaderElection(name));
        await placed;
        await holder.release();
        const term = await elected(standby);
        expect(term.remaining()).toBeGreaterThan(20_000);
        expect(term.remaining()).toBeLessThanOrEqual(30_000);
        await passTime(20);
        expect(term.signal.aborted).toBe(false);
        await standby.election.resign();
        expect(await isFree()).toBe(true);
      },
    );
  });
}
