import '../support/virtual-time.js';
import { Locks, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { PlainData, plainStore } from '../support/plain-store.js';
import { pause } from '../support/time.js';

it('the next in the queue asks often for a moment after the key was passed on (G8)', async () => {
  const data = new PlainData();
  const stores = [plainStore(data), plainStore(data), plainStore(data)] as const;
  const [one, other, third] = stores.map((store) => new Locks(store, { logger: false })) as [Locks, Locks, Locks];
  const asks = jest.spyOn(stores[2].mutex, 'acquire');
  const first = await one.acquire('key');
  const second = other.acquire('key', { waitTimeout: 60_000 });
  await pause(2_000);
  const last = third.acquire('key', { waitTimeout: 60_000 });
  await pause(2_000);
  const rare = await asksIn(200);
  await first.release();
  const lease = await second;
  expect(await asksIn(200)).toBeGreaterThan(rare + 2);
  await pause(2_000);
  expect(await asksIn(200)).toBeLessThan(6);
  await lease.release();
  await (await last).release();
  await Promise.all([one, other, third].map((locks) => locks.close()));

  async function asksIn(milliseconds: number): Promise<number> {
    asks.mockClear();
    await pause(milliseconds);
    return asks.mock.calls.length;
  }
});

it('permits that are passed on during an outage are all released at the store', async () => {
  const store = memoryStore();
  const acquire = store.semaphore!.acquire.bind(store.semaphore);
  let isAway = false;
  store.semaphore!.acquire = (request) => (isAway ? Promise.reject(new StoreError('no answer', { transient: true })) : acquire(request));
  // Each hand-over is a request that gives up a permit for the next caller.
  const locks = new Locks(store, { logger: false, localQueue: { handOvers: 1 }, defaults: { keyTimeout: 60_000, waitTimeout: 30_000 } });
  const semaphore = locks.semaphore('key', { permits: 2 });
  const held = [await semaphore.acquire(), await semaphore.acquire()];
  const waiting = [semaphore.acquire(), semaphore.acquire()];
  await pause(100);
  isAway = true;
  for (const lease of held) {
    await lease.release();
    await pause(100);
  }
  isAway = false;
  const next = await Promise.all(waiting);
  expect(next.map((lease) => lease.remaining() > 0)).toEqual([true, true]);
  await locks.close();
});
