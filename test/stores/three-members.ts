import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { rejection } from '../support/rejection.js';
import { examined } from '../doctor/examined.js';
import type { DatabaseServer } from '../support/database-process.js';
import { eventually } from '../support/eventually.js';

type Member = DatabaseServer & { leads(): Promise<boolean> };

/** An engine of three members, of which some are killed or stopped. */
export function threeMembers<M extends Member>(engine: {
  start(): Promise<M[]>;
  store(members: readonly M[], options?: { requestTimeout: number }): LockStore;
  /** the checks of the doctor that are not ok */
  notOk(members: readonly M[]): Promise<readonly string[]>;
}): void {
  describe('three members', () => {
    let members: M[];
    beforeAll(async () => {
      members = await engine.start();
    });
    afterAll(() => Promise.all(members.map((member) => member.stop())));

    const opened: Locks[] = [];
    afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));
    function open(): Locks {
      opened.push(new Locks(engine.store(members), { logger: false, defaults: { keyTimeout: 20_000, waitTimeout: 60_000 } }));
      return opened.at(-1)!;
    }

    async function leader(): Promise<M> {
      const leads = await Promise.all(members.map((member) => member.leads()));
      const index = leads.indexOf(true);
      if (index < 0) throw new Error('no member leads');
      return members[index]!;
    }

    it('are what the doctor asks for', async () => {
      expect((await examined(engine.store(members))).notOk).toEqual(await engine.notOk(members));
    });

    it.each(['kill', 'pause'] as const)('a lease is kept, and a waiter gets it, through a %s of the leader', async (fault) => {
      const [holder, waiter] = [open(), open()];
      const lease = await holder.acquire('order:42');
      const waiting = waiter.acquire('order:42');
      const old = await leader();
      await old[fault]();
      await eventually(() => lease.renew());
      expect(lease.signal.aborted).toBe(false);
      await eventually(() => lease.release());
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken!);
      await eventually(() => next.release());
      if (fault === 'kill') await old.restart();
      else old.resume();
      await eventually(leader);
    });

    it('a member without the others answers nothing: it neither grants a key nor calls one free', async () => {
      const [alone, ...others] = members as [M, ...M[]];
      const lease = await open().acquire('order:7', { keyTimeout: 60_000 });
      await lease.release();
      for (const other of others) other.pause();
      const store = engine.store([alone], { requestTimeout: 2000 });
      const tenancy = { key: 'order:7', owner: 'me' };
      const acquiring = store.mutex.acquire({ ...tenancy, ttl: 5000, tokens: 1, queue: false });
      expect(await rejection(acquiring)).toMatchObject({ name: 'StoreError', transient: true });
      expect(await rejection(store.mutex.check(tenancy))).toMatchObject({ name: 'StoreError', transient: true });
      for (const other of others) other.resume();
      await eventually(() => store.mutex.check(tenancy));
      await store.close();
    });
  });
}
