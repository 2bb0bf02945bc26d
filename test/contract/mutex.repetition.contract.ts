import { type AcquireReply, type LeaseDriver, LockAbortedError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { gate } from './gate.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore, type Misbehaviour } from './open-locks.js';
import { rejection } from './rejection.js';
import { renewalBy, renewing } from './renewing.js';
import { outage } from './store-failures.js';
import { pause } from '../support/time.js';

type Verb = 'acquire' | 'renew' | 'release' | 'leave';

function changing(verb: Verb, change: <T>(send: () => Promise<T>) => Promise<T>): Misbehaviour {
  return (real) => {
    if (verb === 'renew') return { renew: renewing((request) => change(() => renewalBy(real, request))) };
    return { [verb]: (request: never) => change<unknown>(() => real[verb](request)) };
  };
}

/** The first `times` requests of this kind are applied, and their replies are lost. */
function losingReplies(verb: Verb, times = 1): Misbehaviour {
  return changing(verb, async (send) => {
    const reply = await send();
    if (times-- > 0) throw outage();
    return reply;
  });
}

/** The first `times` requests of this kind do not reach the store. */
function losingRequests(verb: Verb, times = 1): Misbehaviour {
  return changing(verb, async (send) => {
    if (times-- > 0) throw outage();
    return send();
  });
}

/** Writes down which verbs were sent, in order. */
function recording(sent: string[], then: Misbehaviour = () => ({})): Misbehaviour {
  return (real) => {
    const driver: LeaseDriver = { ...real, ...then(real) };
    const verbs: Verb[] = ['acquire', 'renew', 'release', 'leave'];
    const entries = verbs.map((verb) => [verb, (request: never) => (sent.push(verb), driver[verb](request))]);
    return Object.fromEntries(entries) as Partial<LeaseDriver>;
  };
}

export function repetitionContract(makeStore: MakeStore, kind: Kind): void {
  describe('G6 acquire, renew and release are safe to repeat', () => {
    const { open, newKey } = locksOpener(makeStore, kind);
    const options = { keyTimeout: 60_000, waitTimeout: 5_000, retryInterval: 20 };
    const losses = [
      ['replies', losingReplies],
      ['requests', losingRequests],
    ] as const;
    let key: string;

    beforeEach(() => (key = newKey()));

    const isFree = async () => {
      const lease = await open().tryAcquire(key);
      return lease !== null && (await lease.release());
    };

    it.each(losses)('an acquire whose %s are lost is repeated and granted once', async (_what, losing) => {
      const locks = open({ misbehaving: losing('acquire', 2) });
      const lease = await locks.acquire(key, options);
      lease.assertHeld();
      expect(await open().tryAcquire(key)).toBeNull();
      expect(await lease.release()).toBe(true);
      expect(await isFree()).toBe(true);
    });

    it('an acquire whose reply is lost and that is not repeated leaves the key free', async () => {
      const locks = open({ misbehaving: losingReplies('acquire') });
      expect(await rejection(locks.acquire(key, { ...options, waitTimeout: 0 }))).toBeInstanceOf(StoreError);
      await eventually(isFree);
    });

    it.each(losses)('a renewal whose %s are lost is repeated and no loss', async (_what, losing) => {
      const locks = open({ misbehaving: losing('renew', 2) });
      const lease = await locks.acquire(key, { keyTimeout: 900 });
      await pause(1_000);
      lease.assertHeld();
      expect(await lease.release()).toBe(true);
    });

    it('a release whose reply is lost is no loss, and its repetition leaves the next holder alone', async () => {
      const sent: string[] = [];
      const locks = open({ misbehaving: recording(sent, losingReplies('release', 3)) });
      const lost: unknown[] = [];
      locks.on('lost', (event) => lost.push(event));
      expect(await locks.using(key, () => 'done', options)).toBe('done');
      const next = await open().acquire(key, options);
      await eventually(() => sent.filter((verb) => verb === 'release').length === 4);
      await next.renew();
      expect(await next.release()).toBe(true);
      expect(lost).toEqual([]);
    });

    it('a release whose request is lost is repeated until the key is free, long before it would run out', async () => {
      const locks = open({ misbehaving: losingRequests('release', 2) });
      const unknown: string[] = [];
      locks.on('unknown', ({ operation }) => unknown.push(operation));
      expect(await locks.using(key, () => 'done', options)).toBe('done');
      await eventually(isFree);
      expect(unknown).toEqual(['release', 'release']);
    });

    it('a renewal that arrives after the release does not take the key again', async () => {
      const late = gate();
      const arrived = gate();
      const locks = open({
        misbehaving: (real) => ({
          renew: renewing((request) => late.passed.then(() => renewalBy(real, request)).finally(() => arrived.open())),
        }),
      });
      const lost: unknown[] = [];
      locks.on('lost', (event) => lost.push(event));
      const lease = await locks.acquire(key, options);
      const renewal = lease.renew();
      expect(await lease.release()).toBe(true);
      late.open();
      await Promise.all([renewal, arrived.passed]);
      expect(await isFree()).toBe(true);
      expect(lost).toEqual([]);
    });

    it.each([
      ['is granted', async (send: () => Promise<AcquireReply>) => send()],
      ['fails', async (send: () => Promise<AcquireReply>) => send().then(() => Promise.reject(outage()))],
    ])('a give-up rejects its caller at once, and sends its leave when the acquire under way %s', async (_how, settle) => {
      const sent: string[] = [];
      const answer = gate();
      const slow: Misbehaviour = (real) => ({ acquire: (request) => answer.passed.then(() => settle(() => real.acquire(request))) });
      const locks = open({ misbehaving: recording(sent, slow) });
      const caller = new AbortController();
      const call = rejection(locks.acquire(key, { ...options, signal: caller.signal }));
      await eventually(() => sent.length === 1);
      caller.abort();
      expect(await call).toBeInstanceOf(LockAbortedError);
      await pause(50);
      expect(sent).toEqual(['acquire']);
      answer.open();
      await eventually(() => sent.length === 2);
      expect(sent).toEqual(['acquire', 'leave']);
      await eventually(isFree);
    });

    it('a give-up sends no leave when the acquire under way finds nothing to leave', async () => {
      const holder = await open().acquire(key, options);
      const sent: string[] = [];
      const answer = gate();
      const slow: Misbehaviour = (real) => ({ acquire: (request) => answer.passed.then(() => real.acquire(request)) });
      const locks = open({ misbehaving: recording(sent, slow) });
      const caller = new AbortController();
      const call = rejection(locks.acquire(key, { ...options, signal: caller.signal }));
      await eventually(() => sent.length === 1);
      caller.abort();
      await call;
      answer.open();
      await locks.close();
      expect(sent).toEqual(['acquire']);
      await holder.release();
    });

    it('a give-up whose leave gets no answer is repeated until the key is free', async () => {
      const locks = open({
        misbehaving: (real) => ({ ...losingReplies('acquire')(real), ...losingRequests('leave', 2)(real) }),
      });
      expect(await rejection(locks.acquire(key, { ...options, waitTimeout: 0 }))).toBeInstanceOf(StoreError);
      await eventually(isFree);
    });

    it('a give-up while the key is another’s needs no leave, but a fair one gives its place up', async () => {
      const holder = await open().acquire(key, options);
      const sent: string[] = [];
      const locks = open({ misbehaving: recording(sent) });
      expect(await locks.tryAcquire(key)).toBeNull();
      expect(sent).toEqual(['acquire']);
      const order: string[] = [];
      await rejection(locks.acquire(key, { ...options, waitTimeout: 30, fair: true }));
      await eventually(() => sent.at(-1) === 'leave');
      const next = open().using(key, () => order.push('next'), { ...options, fair: true });
      await holder.release();
      await next;
      expect(order).toEqual(['next']);
    });
  });
}
