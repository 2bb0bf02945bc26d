import { memoryStore } from 'nestjs-distributed-lock/memory';
import { countDownLatchContract } from '../contract/count-down-latch.contract.js';
import { eventually } from '../support/eventually.js';
import { recordsOf } from './memory/setting.js';

const store = memoryStore();
const records = recordsOf(store);

countDownLatchContract(
  'memory',
  () => store,
  (key) => [...(records.get(key)?.waiters ?? [])],
);

it('the memory store forgets latches that have expired, though nobody asks after them', async () => {
  const operation = { line: 'line', number: 1 };
  await store.countDownLatch!.trySetCount({ key: 'forgotten', ttl: 10, count: 1, operation });
  expect(records.has('forgotten')).toBe(true);
  await eventually(() => !records.has('forgotten'));
});
