import { memoryStore } from 'nestjs-distributed-lock/memory';
import { mutexContract } from '../contract/mutex.contract.js';
import { eventually } from '../support/eventually.js';

const store = memoryStore();

/** Keys that are held or waited for. What has ended is swept away within a second or two. */
function remains(): string[] {
  const { entries, queues } = store.mutex as unknown as Record<'entries' | 'queues', Map<string, unknown>>;
  return [...entries.keys(), ...queues.keys()];
}

mutexContract('memory', () => store, remains);

it('the memory store forgets what has run out, though nobody asks after it', async () => {
  await store.mutex.acquire({ key: 'forgotten', owner: 'dead', ttl: 10, tokens: 1, queue: false, abandoned: () => false });
  expect(remains()).toContain('forgotten');
  await eventually(() => !remains().includes('forgotten'));
});
