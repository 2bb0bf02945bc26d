import { passTime } from '../support/virtual-time.js';
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import type { LatchRecord } from '../../lib/stores/records/record.work.js';
import { engineContract } from '../contract/engine.contracts.js';
import { wholeStoreContract } from '../contract/store.contracts.js';
import { eventually } from '../support/eventually.js';
import { memoryAndRemains, rowsOf } from './memory/setting.js';

const { store, remains } = memoryAndRemains();
const rows = rowsOf(store);

wholeStoreContract('memory', () => store);
engineContract(
  'memory',
  () => store,
  remains,
  (key) => Object.keys((rows.get(key)?.record as LatchRecord | undefined)?.waiters ?? {}),
);

it('the memory store forgets what has run out, though nobody asks after it', async () => {
  const dead = { owner: 'dead', ttl: 10, tokens: 1, queue: false };
  await store.mutex.acquire({ ...dead, key: 'forgotten' });
  await store.semaphore!.acquire({ ...dead, key: 'forgotten permit', share: { count: 1, permits: 1, rank: 0 } });
  await store.countDownLatch!.trySetCount({ key: 'forgotten latch', ttl: 10, count: 1, operation: { line: 'line', number: 1 } });
  expect(remains()).toEqual(expect.arrayContaining(['forgotten', 'forgotten permit', 'forgotten latch']));
  await eventually(() => !remains().some((name) => name.startsWith('forgotten')));
});

it('the record of a latch keeps a change only while it may be repeated, however many processes make one', async () => {
  const many = Array.from({ length: 100 }, () => new Locks(store, { logger: false }));
  const [first, ...others] = many.map((locks) => locks.countDownLatch('counted'));
  const lines = () => Object.keys((rows.get('counted')!.record as LatchRecord).lines).length;
  await first!.trySetCount(1_000);
  await Promise.all(others.map((latch) => latch.countDown({ waitTimeout: 2_000 })));
  await first!.countDown({ waitTimeout: 2_000 });
  expect(lines()).toBe(100);
  await passTime(7_000);
  await first!.countDown();
  expect(lines()).toBe(1);
  await Promise.all(many.map((locks) => locks.close()));
});

it('the memory store does not listen for a caller that has stopped to wait', async () => {
  const fresh = memoryStore();
  const { listeners } = fresh.mutex.wakeUps as unknown as { listeners: Map<string, unknown> };
  const [locks, others] = [new Locks(fresh), new Locks(fresh)];
  const holder = await locks.acquire('listened for', { keyTimeout: 60_000 });
  const next = others.acquire('listened for', { fair: true, waitTimeout: 10_000 });
  await expect(others.acquire('listened for', { fair: true, waitTimeout: 20 })).rejects.toThrow();
  expect(listeners.size).toBeGreaterThan(0);
  await holder.release();
  await (await next).release();
  await eventually(() => listeners.size === 0);
  await Promise.all([locks.close(), others.close()]);
});
