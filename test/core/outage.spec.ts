import { passTime } from '../support/virtual-time.js';
import { Locks, StoreError } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';

it('an outage is told to every waiter of a process, not only to the first', async () => {
  const store = memoryStore();
  const holder = await new Locks(store, { logger: false }).acquire('key', { keyTimeout: 3_600_000 });
  let isDown = false;
  const mutex = Object.create(store.mutex) as typeof store.mutex;
  mutex.acquire = async (request) => {
    if (isDown) throw new StoreError('down', { transient: true });
    return store.mutex.acquire(request);
  };
  const locks = new Locks({ ...store, mutex }, { logger: false });
  const options = { waitTimeout: 4_000, retryInterval: 5_000 };
  const calls = [1, 2, 3].map(() => locks.acquire('key', options).catch((error: unknown) => error));
  await passTime(500);
  isDown = true;
  expect((await Promise.all(calls)).map((error) => (error as Error).name)).toEqual(['StoreError', 'StoreError', 'StoreError']);
  await holder.release();
});
