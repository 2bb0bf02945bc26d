import { passTime } from '../support/virtual-time.js';
import { currentLease, type Lease, LockAbortedError, LockConfigError, LockLostError, StoreError } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import { failing, held, losing, refusal } from './misbehaviour.js';
import { rejection } from '../support/rejection.js';
import { patient, type Setting } from './setting.js';

/** A lease that one process hands over, and another one adopts. */
export function adoptionContract({ open, newKey, driver, isFree, takeAway }: Setting, remains: () => Promise<string[]> | string[]): void {
  describe('a lease that is handed over', () => {
    const within = 3_000;
    const keyTimeout = 900;
    let key: string;
    beforeEach(() => (key = newKey()));

    const handedOver = async (options = {}, time = within) => {
      const lease = await open().acquire(key, { keyTimeout, ...options });
      return { lease, ticket: await lease.handOver({ within: time }) };
    };
    const look = () => driver().check({ key, owner: 'nobody' });

    it('belongs to the process that adopts it, with a larger token, is renewed there, and is free after its release', async () => {
      const { lease, ticket } = await handedOver();
      const adopted = await open().adopt(ticket, { keyTimeout });
      expect(adopted).toMatchObject({ key, owner: expect.not.stringMatching(lease.owner) });
      expect(adopted.fencingToken).toBeGreaterThan(lease.fencingToken!);
      expect(adopted.remaining()).toBeLessThanOrEqual(keyTimeout);
      await passTime(2 * within);
      adopted.assertHeld();
      expect(await isFree(key)).toBe(false);
      expect(await adopted.release()).toBe(true);
      expect(await isFree(key)).toBe(true);
    });

    it('is over for the process that had it: nothing was lost, and it cannot release, renew or hand over again (G5)', async () => {
      const locks = open();
      const ends: string[] = [];
      for (const event of ['released', 'lost', 'handedOver'] as const) locks.on(event, () => ends.push(event));
      const lease = await locks.acquire(key);
      const { signal } = lease;
      await lease.handOver({ within });
      expect(lease.remaining()).toBe(0);
      expect(() => lease.assertHeld()).toThrow('handed over to another process');
      for (const end of [lease.renew(), lease.handOver({ within })]) expect(await rejection(end)).toBeInstanceOf(LockLostError);
      expect(await lease.release()).toBe(false);
      await locks.close();
      expect(signal.aborted).toBe(false);
      expect(ends).toEqual(['handedOver']);
      expect(await isFree(key)).toBe(false);
    });

    it('lets the method go on without a lease, and its result is passed on (G10)', async () => {
      let ticket = '';
      const work = async (lease: Lease) => {
        ticket = await currentLease()!.handOver({ within });
        expect(currentLease()).toBeUndefined();
        expect(lease.signal.aborted).toBe(false);
        return 'done';
      };
      expect(await open().using(key, work)).toBe('done');
      expect(await isFree(key)).toBe(false);
      await (await open().adopt(ticket)).release();
    });

    it('is adopted once, the first time (G2)', async () => {
      const { ticket } = await handedOver();
      const outcomes = await Promise.allSettled([1, 2, 3].map(() => open().adopt(ticket)));
      const [adopted, ...others] = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
      expect(others).toEqual([]);
      expect(await rejection(open().adopt(ticket))).toBeInstanceOf(LockLostError);
      adopted!.assertHeld();
      expect(await adopted!.release()).toBe(true);
      expect(await rejection(open().adopt(ticket))).toMatchObject({ name: 'LockLostError', key });
    });

    it('is free when nobody has adopted it in time, not before, and cannot be adopted then', async () => {
      const { ticket } = await handedOver();
      await passTime(within - 500);
      expect(await isFree(key)).toBe(false);
      await passTime(500);
      await eventually(() => isFree(key));
      expect(await rejection(open().adopt(ticket))).toBeInstanceOf(LockLostError);
      expect(await isFree(key)).toBe(true);
    });

    it('was not handed over where it is lost, or the store does not answer', async () => {
      const unheard = await open({ misbehaving: losing('renew', 1) }).acquire(key, { keyTimeout });
      expect(await rejection(unheard.handOver({ within }))).toBeInstanceOf(StoreError);
      // The giver has it as before.
      unheard.assertHeld();
      await passTime(2 * within);
      unheard.assertHeld();
      expect(await unheard.release()).toBe(true);
      expect(await isFree(key)).toBe(true);
      const lost = await open().acquire(key);
      await takeAway(lost);
      expect(await rejection(lost.handOver({ within }))).toBeInstanceOf(LockLostError);
      expect(lost.signal.aborted).toBe(true);
    });

    it.each([
      ['request', failing],
      ['reply', losing],
    ] as const)('is handed over by the next request where the %s that hands it over is lost (G6)', async (_what, lose) => {
      const locks = open({ misbehaving: lose('adopt', 1) });
      const lease = await locks.acquire(key, { keyTimeout });
      const ticket = await lease.handOver({ within });
      expect(lease.signal.aborted).toBe(false);
      await eventually(async () => (await look()).holder !== lease.owner);
      expect((await look()).remaining).toBeLessThanOrEqual(within);
      const next = locks.acquire(key, patient);
      const adopted = await open().adopt(ticket);
      expect(await adopted.release()).toBe(true);
      await (await next).release();
    });

    it('was not handed over where it is released or its locks are closed meanwhile (G2)', async () => {
      for (const end of ['release', 'close'] as const) {
        const renewal = held('renew');
        const locks = open({ misbehaving: renewal.misbehaving });
        const lease = await locks.acquire(key);
        const ticket = rejection(lease.handOver({ within }));
        await renewal.sent;
        await (end === 'release' ? lease.release() : locks.close());
        renewal.answer();
        expect(await ticket).toBeInstanceOf(LockLostError);
        expect(await isFree(key)).toBe(true);
      }
    });

    it('was not handed over where it is taken away meanwhile', async () => {
      const request = held('adopt', 'requests');
      const lease = await open({ misbehaving: request.misbehaving }).acquire(key);
      const ticket = rejection(lease.handOver({ within }));
      await request.sent;
      await takeAway(lease);
      request.answer();
      expect(await ticket).toBeInstanceOf(LockLostError);
      expect(await isFree(key)).toBe(true);
    });

    it('is held on where its ticket would have no date', async () => {
      const lease = await open().acquire(key);
      expect(await rejection(lease.handOver({ within: 8.64e15 }))).toBeInstanceOf(LockConfigError);
      expect(await lease.release()).toBe(true);
    });

    it('is the only one of its key in its call chain, else that is an error and the lease is held on', async () => {
      const locks = open();
      await locks.using(key, async (outer) => {
        await locks.using(key, async (inner) => {
          for (const lease of [inner, outer]) expect(await rejection(lease.handOver({ within }))).toBeInstanceOf(LockConfigError);
        });
        outer.assertHeld();
        await (await open().adopt(await outer.handOver({ within }))).release();
      });
    });

    it('is waited for by the next caller of its process as by any other one, and that has a larger token (G2, G8)', async () => {
      const locks = open();
      const lease = await locks.acquire(key);
      let isTaken = false;
      const next = locks.acquire(key, patient);
      void next.then(() => (isTaken = true));
      const adopted = await open().adopt(await lease.handOver({ within }));
      await passTime(within);
      expect(isTaken).toBe(false);
      await adopted.release();
      expect((await next).fencingToken).toBeGreaterThan(adopted.fencingToken!);
      await (await next).release();
    });

    it('keeps its minHold', async () => {
      const { ticket } = await handedOver({ minHold: 2 * within });
      const adopted = await open().adopt(ticket);
      expect(await adopted.release()).toBe(true);
      await passTime(1.5 * within);
      expect(await isFree(key)).toBe(false);
      await passTime(within / 2);
      await eventually(() => isFree(key));
    });

    it.each([
      ['replies', losing],
      ['requests', failing],
    ] as const)('is adopted once when the %s for it are lost, and asked for again (G6)', async (_what, lose) => {
      const { ticket } = await handedOver();
      const adopted = await open({ misbehaving: lose('adopt', 2) }).adopt(ticket, { waitTimeout: 5_000, retryInterval: 20 });
      adopted.assertHeld();
      expect(await adopted.release()).toBe(true);
      expect(await isFree(key)).toBe(true);
    });

    it('can be adopted later where no request for it has arrived in time (G9)', async () => {
      const { ticket } = await handedOver();
      const waiting = { waitTimeout: 1_000, retryInterval: 100 };
      expect(await rejection(open({ misbehaving: failing('adopt') }).adopt(ticket, waiting))).toBeInstanceOf(StoreError);
      expect(await rejection(open({ misbehaving: failing('adopt', Infinity, refusal) }).adopt(ticket))).toMatchObject({ transient: false });
      await (await open().adopt(ticket)).release();
    });

    it.each(['an outage', 'its signal', 'the end of its locks'])(
      'goes back to its ticket, for the time that is left, when its adoption is called off by %s after it was applied (G6, G7)',
      async (end) => {
        const { ticket } = await handedOver({}, 60_000);
        const request = held('adopt');
        const isOut = end === 'an outage';
        const locks = open({ misbehaving: isOut ? losing('adopt', 1) : request.misbehaving });
        const controller = new AbortController();
        const { signal } = controller;
        const adoption = rejection(locks.adopt(ticket, { keyTimeout: 10_000, waitTimeout: isOut ? 0 : 60_000, signal }));
        if (!isOut) await request.sent;
        const ended = end === 'its signal' ? controller.abort() : isOut ? adoption : locks.close();
        expect(await adoption).toBeInstanceOf(isOut ? StoreError : LockAbortedError);
        request.answer();
        // Another try of this process waits until the ticket is good again.
        if (signal.aborted) return void (await (await locks.adopt(ticket, patient)).release());
        await ended;
        await eventually(async () => (await look()).remaining > 30_000);
        expect((await look()).remaining).toBeLessThanOrEqual(60_000);
        await (await open().adopt(ticket)).release();
      },
    );

    it('cannot be adopted by what logs and errors show, nor by a ticket that was changed (G2, G5)', async () => {
      const textOf = (ticket: object) => `ndl1.${Buffer.from(JSON.stringify(ticket)).toString('base64url')}`;
      const dataOf = (text: string) => JSON.parse(Buffer.from(text.slice(5), 'base64url').toString()) as { keepFor: number };
      const cannotBeAdopted = async (text: string) => expect(await rejection(open().adopt(text))).toBeInstanceOf(LockLostError);
      const lease = await open().acquire(key, { minHold: 60_000 });
      const { owner } = lease;
      const made = { key, keepFor: 0, secret: '' };
      await cannotBeAdopted(textOf({ ...made, owner }));
      const ticket = await lease.handOver({ within });
      const { holder } = await look();
      expect(holder).not.toBe(owner);
      for (const seen of [owner, holder!]) await cannotBeAdopted(textOf({ ...made, owner: seen }));
      await cannotBeAdopted(textOf({ ...dataOf(ticket), keepFor: 2 ** 53 - 1 }));
      const adopted = await open().adopt(ticket);
      await adopted.release();
      for (const seen of [adopted.owner, `kept:${adopted.owner}`]) await cannotBeAdopted(textOf({ ...made, owner: seen }));
      expect(await isFree(key)).toBe(false);
    });

    it('is not adopted by a caller that is called off, or by locks that are closed', async () => {
      const { ticket } = await handedOver();
      const aborted = open().adopt(ticket, { signal: AbortSignal.abort() });
      expect(await rejection(aborted)).toBeInstanceOf(LockAbortedError);
      const locks = open();
      await locks.close();
      expect(await rejection(locks.adopt(ticket))).toBeInstanceOf(LockAbortedError);
      await (await open().adopt(ticket)).release();
    });

    it('is released when the locks of the process that adopted it are closed, and leaves nothing behind (G7)', async () => {
      const before = await remains();
      const locks = open();
      const adopted = await locks.adopt((await handedOver()).ticket);
      await locks.close();
      expect(adopted.signal.aborted).toBe(true);
      expect(await isFree(key)).toBe(true);
      expect(await remains()).toEqual(before);
    });

    it('tells in its events which process had it', async () => {
      const { lease, ticket } = await handedOver();
      const locks = open();
      const acquired = jest.fn();
      locks.on('acquired', acquired);
      const adopted = await locks.adopt(ticket, { label: 'Worker.ship' });
      const { owner, fencingToken } = adopted;
      expect(acquired).toHaveBeenCalledTimes(1);
      expect(acquired.mock.calls[0]).toMatchObject([
        { key, owner, fencingToken, label: 'Worker.ship', via: 'adopted', adoptedFrom: lease.owner },
      ]);
      await adopted.release();
    });
  });
}
