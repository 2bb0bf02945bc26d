import { Locks } from 'nestjs-distributed-lock/core';
import { leaderElectionContract } from '../contract/leader-election.contract.js';
import { mutexContract } from '../contract/mutex.contract.js';
import { eventually } from '../support/eventually.js';
import { memoryAndRemains } from './memory/setting.js';

const { store, remains } = memoryAndRemains();

mutexContract('memory', () => store, remains);
leaderElectionContract('memory', () => store, remains);

it('the memory store forgets what has run out, though nobody asks after it', async () => {
  const dead = { owner: 'dead', ttl: 10, tokens: 1, queue: false };
  await store.mutex.acquire({ ...dead, key: 'forgotten' });
  await store.semaphore!.acquire({ ...dead, key: 'forgotten permit', share: { count: 1, permits: 1, rank: 0 } });
  expect(remains()).toEqual(expect.arrayContaining(['forgotten', 'forgotten permit']));
  await eventually(() => !remains().some((name) => name.startsWith('forgotten')));
});

it('the memory store listens for nobody who waits no more', async () => {
  const { listeners } = store.mutex.wakeUps as unknown as { listeners: Map<string, unknown> };
  const [locks, others] = [new Locks(store), new Locks(store)];
  const holder = await locks.acquire('listened for');
  const next = others.acquire('listened for', { fair: true, waitTimeout: 10_000 });
  await expect(others.acquire('listened for', { fair: true, waitTimeout: 20 })).rejects.toThrow();
  expect(listeners.size).toBeGreaterThan(0);
  await holder.release();
  await (await next).release();
  await eventually(() => listeners.size === 0);
  await Promise.all([locks.close(), others.close()]);
});
