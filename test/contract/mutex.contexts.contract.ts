import { AsyncLocalStorage } from 'node:async_hooks';
import type { Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../support/eventually.js';
import type { Kind } from './kinds.js';
import { locksOpener, type MakeStore } from './open-locks.js';
import { rejection } from './rejection.js';

const patient = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };

/** In which call chain listeners run: with the request id and the transaction of the call that they are told of, never of another one. */
export function contextsContract(makeStore: MakeStore, kind: Kind): void {
  describe('a listener runs in the context of the call that it hears of', () => {
    const { open, newKey, driver } = locksOpener(makeStore, kind);
    const chain = new AsyncLocalStorage<string>();
    let key: string;
    let locks: Locks;
    let heard: string[];

    beforeEach(() => {
      key = newKey();
      locks = open();
      heard = [];
      for (const event of ['acquired', 'waiting', 'timeout'] as const) {
        locks.on(event, () => heard.push(`${event}: ${chain.getStore()}`));
      }
    });

    it.each(['its own process', 'another one'])('which waits behind a holder of %s', async (where) => {
      const isLocal = where === 'its own process';
      const holder = await chain.run('holder', () => (isLocal ? locks : open()).acquire(key, patient));
      const next = chain.run('next', () => locks.acquire(key, patient));
      const impatient = chain.run('impatient', () => rejection(locks.acquire(key, { ...patient, waitTimeout: 50 })));
      const last = chain.run('last', () => locks.acquire(key, patient));
      await impatient;
      await chain.run('another call', () => holder.release());
      // Who is not fair may be overtaken, where each has a place of its own at the store.
      await Promise.all([next, last].map((lease) => chain.run('another call', async () => (await lease).release())));
      const expected = ['waiting: next', 'waiting: impatient', 'waiting: last', 'timeout: impatient', 'acquired: next', 'acquired: last'];
      expect(heard.sort()).toEqual((isLocal ? ['acquired: holder', ...expected] : expected).sort());
    });

    it('and whose signal aborts because another one found its key lost', async () => {
      const aborted: unknown[] = [];
      const holder = await chain.run('holder', async () => {
        const lease = await locks.acquire(key, patient);
        lease.signal.addEventListener('abort', () => aborted.push(chain.getStore()));
        return lease;
      });
      const next = chain.run('next', () => locks.acquire(key, { ...patient, retryInterval: 50 }));
      await driver().release({ key, owner: holder.owner, keepFor: 0 });
      // Whoever asks first finds it.
      await chain.run('another call', () => rejection(holder.renew()));
      await eventually(() => expect(aborted).toEqual(['holder']));
      await (await next).release();
      expect(heard).toContain('acquired: next');
    });
  });
}
