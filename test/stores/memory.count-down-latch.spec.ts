import { memoryStore } from 'nestjs-distributed-lock/memory';
import { countDownLatchContract } from '../contract/count-down-latch.contract.js';
import { eventually } from '../support/eventually.js';

const store = memoryStore();
const { latches } = store.countDownLatch as unknown as { latches: Map<string, { waiters: Set<string> }> };

countDownLatchContract(
  'memory',
  () => store,
  (key) => [...(latches.get(key)?.waiters ?? [])],
);

it('the memory store forgets latches that have expired, though nobody asks after them', async () => {
  const operation = { line: 'line', number: 1 };
  await store.countDownLatch!.trySetCount({ key: 'forgotten', ttl: 10, count: 1, operation });
  expect(latches.has('forgotten')).toBe(true);
  await eventually(() => !latches.has('forgotten'));
});
