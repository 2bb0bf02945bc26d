import { passTime } from '../support/virtual-time.js';
import type { AcquireReply } from 'nestjs-distributed-lock/core';
import { LockAbortedError, LockLostError, LockTimeoutError, QuorumError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { standStill } from '../support/time.js';
import { changing, counting, failing, fault, held, late, outage, refusal, silent } from './misbehaviour.js';
import { rejection, timed } from '../support/rejection.js';
import { renewing } from './renewing.js';
import { long, type Setting } from './setting.js';

export function entryContract({ open, newKey, isFree }: Setting): void {
  let key: string;
  beforeEach(() => (key = newKey()));

  describe('G1 no option, race or outage lets a body start without its lease', () => {
    const body = jest.fn(() => 'ran');
    beforeEach(() => void body.mockClear());
    afterEach(() => expect(body).not.toHaveBeenCalled());

    it.each([{ waitTimeout: 0 }, { waitTimeout: 60 }, { waitTimeout: 60, fair: true }, { retryCount: 3, retryInterval: 20 }])(
      'not while another holds the key, with %j',
      async (options) => {
        await open().acquire(key);
        expect(await rejection(open().using(key, body, options))).toBeInstanceOf(LockTimeoutError);
      },
    );

    it.each([
      ['is away', outage, { waitTimeout: 0 }],
      ['is away', outage, { waitTimeout: 60 }],
      ['is away', outage, { waitTimeout: 60, fair: true }],
      ['refuses, at once', refusal, { waitTimeout: Infinity }],
      ['breaks, at once', fault, { waitTimeout: Infinity }],
    ])('not when the store %s, which is no timeout', async (_how, failure, options) => {
      const locks = open({ misbehaving: failing('acquire', Infinity, failure) });
      for (const onTimeout of ['skip', () => body()] as const) {
        const { result, elapsed } = await timed(() => rejection(locks.using(key, body, { onTimeout, ...options })));
        expect(result).toBeInstanceOf(StoreError);
        expect(elapsed).toBeLessThan(100);
      }
    });

    it('not on a grant that comes when its lease has run out; the key is released', async () => {
      const locks = open({ misbehaving: late('acquire', 150) });
      // The store is slow: that is no contention.
      expect(await rejection(locks.using(key, body, { keyTimeout: 100, waitTimeout: 0 }))).toBeInstanceOf(StoreError);
      await eventually(() => isFree(key));
    });

    it('not when the signal had been aborted', async () => {
      const error = await rejection(open().using(key, body, { signal: AbortSignal.abort('enough') }));
      expect(error).toBeInstanceOf(LockAbortedError);
      expect(error).toMatchObject({ reason: 'signal', cause: 'enough', key });
      expect(await isFree(key)).toBe(true);
    });

    it('not when the signal aborts while the request is under way, though it is granted; the key is released', async () => {
      const { sent, answer, misbehaving } = held('acquire');
      const caller = new AbortController();
      const call = rejection(open({ misbehaving }).using(key, body, { ...long, signal: caller.signal }));
      await sent;
      caller.abort();
      expect(await call).toBeInstanceOf(LockAbortedError);
      expect(await isFree(key)).toBe(false);
      answer();
      await eventually(() => isFree(key));
    });

    it('not when the signal aborts with the grant in the same iteration of the event loop', async () => {
      const caller = new AbortController();
      const abort = (reply: AcquireReply) => {
        if (reply.granted) caller.abort();
        return reply;
      };
      const locks = open({ misbehaving: changing('acquire', (send) => send().then(abort)) });
      expect(await rejection(locks.using(key, body, { signal: caller.signal }))).toBeInstanceOf(LockAbortedError);
      await eventually(() => isFree(key));
    });

    it('not when the event loop stood still after the grant until the lease had run out', async () => {
      const locks = open();
      locks.on('acquired', () => standStill(150));
      expect(await rejection(locks.using(key, body, { keyTimeout: 100 }))).toBeInstanceOf(LockLostError);
    });
  });

  it('G1 a grant that came too late is asked for again, and only the second one counts', async () => {
    const locks = open({ misbehaving: late('acquire', 350, 1) });
    const attempts: number[] = [];
    locks.on('acquired', (event) => attempts.push(event.attempts));
    const remaining = await locks.using(key, (lease) => lease.remaining(), { keyTimeout: 300, waitTimeout: 5_000 });
    expect(remaining).toBeGreaterThan(0);
    expect(attempts).toEqual([2]);
  });
}

/** What an acquire does for as long as it may wait, and what it says then. */
export function patienceContract({ open, newKey }: Setting): void {
  let key: string;
  beforeEach(() => (key = newKey()));
  const holdKey = () => open().acquire(key, long);

  describe('G9 an acquire ends when its wait timeout does', () => {
    it('the wait timeout is a time and not a number of tries', async () => {
      const { owner: holder } = await holdKey();
      const tries = counting('acquire');
      const locks = open({ misbehaving: tries.misbehaving });
      const options = { waitTimeout: 400, retryCount: 2, retryInterval: 10 };
      const { result, elapsed } = await timed(() => rejection(locks.acquire(key, options)));
      expect(result).toBeInstanceOf(LockTimeoutError);
      expect(result).toMatchObject({ code: 'LOCK_TIMEOUT', key, holder });
      expect(elapsed).toBeGreaterThanOrEqual(400);
      expect(elapsed).toBeLessThan(450);
      expect(tries.asked).toBeGreaterThan(2);
    });

    it('says that the key is kept and for how long, while the minHold of a released lease lasts', async () => {
      const holder = await open().acquire(key, { ...long, minHold: 60_000 });
      await holder.release();
      for (const waitTimeout of [0, 20]) {
        const error = await rejection(open().acquire(key, { waitTimeout }));
        expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', holder: holder.owner });
        const [, left, by] = /: it is kept by its minHold for (\d+) s more: (\S+) has released it\. /.exec((error as Error).message) ?? [];
        expect([by, Math.round(Number(left) / 10)]).toEqual([holder.owner, 6]);
      }
    });

    it('names no holder where the store does not say who it is', async () => {
      const reply: AcquireReply = { granted: false, remaining: -1, holder: null, ahead: 1 };
      const error = await rejection(open({ misbehaving: () => ({ acquire: async () => reply }) }).acquire(key, { waitTimeout: 0 }));
      expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', holder: undefined });
      expect((error as Error).message).toMatch(/: it is taken\. \[LOCK_TIMEOUT\]$/);
    });

    it.each([{ retryCount: 1 }, { waitTimeout: 0 }, { waitTimeout: 0, retryCount: 0 }, { waitTimeout: 0, fair: true }])(
      'asks once with %j',
      async (options) => {
        await holdKey();
        const attempts: number[] = [];
        const locks = open();
        locks.on('timeout', (event) => attempts.push(event.attempts));
        expect(await rejection(locks.acquire(key, options))).toBeInstanceOf(LockTimeoutError);
        expect(attempts).toEqual([1]);
      },
    );

    it.each([{ retryCount: 0 }, { waitTimeout: Infinity }, { waitTimeout: Infinity, fair: true }, { waitTimeout: 2 ** 40 }])(
      'waits for as long as it takes with %j',
      async (options) => {
        const holder = await holdKey();
        const waiting = open().acquire(key, { retryInterval: 10, ...options });
        await passTime(5_000);
        await holder.release();
        (await waiting).assertHeld();
      },
    );

    it.each([0, 300])('ends by %d ms and one requestTimeout when the store never answers', async (waitTimeout) => {
      const away = open({ misbehaving: silent('acquire', 200), requestTimeout: 200 });
      const { result, elapsed } = await timed(() => rejection(away.acquire(key, { waitTimeout })));
      expect(result).toBeInstanceOf(StoreError);
      expect(result).toMatchObject({ code: 'LOCK_STORE', key });
      expect(elapsed).toBeGreaterThanOrEqual(Math.max(waitTimeout, 200));
      expect(elapsed).toBeLessThanOrEqual(waitTimeout + 200);
    });

    it('waits through an outage that ends in time, also while too few servers of a quorum answer', async () => {
      const tooFew = () => new QuorumError('Too few votes, on purpose.', { key, votes: ['granted', outage()] });
      for (const failure of [outage, tooFew]) {
        const lease = await open({ misbehaving: failing('acquire', 3, failure) }).acquire(key, { waitTimeout: 20_000, retryInterval: 10 });
        expect(await lease.release()).toBe(true);
      }
      const away = open({ misbehaving: failing('acquire', Infinity, tooFew) });
      const [first, second] = await Promise.all([1, 2].map(() => rejection(away.acquire(key, { waitTimeout: 100, retryInterval: 10 }))));
      expect(first).toBeInstanceOf(QuorumError);
      expect(first).toMatchObject({ code: 'LOCK_QUORUM', key, transient: true, votes: ['granted', expect.any(StoreError)] });
      expect(second).toEqual(first);
      expect(second).not.toBe(first);
    });

    it('tells contention from an outage by the last try', async () => {
      await holdKey();
      const change = performance.now() + 150;
      const mending = changing('acquire', (send) => (performance.now() < change ? Promise.reject(outage()) : send()));
      const breaking = changing('acquire', (send) => (performance.now() > change ? Promise.reject(outage()) : send()));
      const ends = [mending, breaking].map((misbehaving) =>
        rejection(open({ misbehaving }).acquire(key, { waitTimeout: 400, retryInterval: 10 })),
      );
      expect(await ends[0]).toBeInstanceOf(LockTimeoutError);
      expect(await ends[1]).toBeInstanceOf(StoreError);
    });

    it.each([false, true])('ends at once when the signal aborts between two tries (fair: %p)', async (fair) => {
      await holdKey();
      const caller = new AbortController();
      const waiting = rejection(open().acquire(key, { waitTimeout: Infinity, retryInterval: 60_000, fair, signal: caller.signal }));
      await passTime(300);
      caller.abort(new Error('The user went away.'));
      const { result, elapsed } = await timed(() => waiting);
      expect(result).toBeInstanceOf(LockAbortedError);
      expect(result).toMatchObject({ code: 'LOCK_ABORTED', reason: 'signal', cause: { message: 'The user went away.' }, key });
      expect(elapsed).toBe(0);
    });
  });

  describe('G9 a release delays a result by at most one requestTimeout', () => {
    it('and is repeated behind its back when it gets no answer', async () => {
      const releases = counting('release');
      const misbehaving = changing('release', () => (releases.asked++, passTime(200).then(() => Promise.reject(outage()))));
      const { result, elapsed } = await timed(() => open({ requestTimeout: 200, misbehaving }).using(key, () => 'done', long));
      expect(result).toBe('done');
      expect(elapsed).toBeLessThanOrEqual(250);
      await eventually(() => releases.asked > 1);
    });

    it('and not at all when the lease was lost before', async () => {
      const away = open({
        requestTimeout: 50,
        misbehaving: (real) => ({ renew: renewing(async () => 'lost'), ...silent('release')(real) }),
      });
      const lease = await away.acquire(key);
      await rejection(lease.renew());
      const { result, elapsed } = await timed(() => lease.release());
      expect(result).toBe(false);
      expect(elapsed).toBe(0);
    });
  });
}
