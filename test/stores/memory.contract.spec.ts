import { memoryStore } from 'nestjs-distributed-lock/memory';
import { mutexContract } from '../contract/mutex.contract.js';

const store = memoryStore();

/** Keys that are held or waited for. What has ended is swept away within a second or two. */
function remains(): string[] {
  const { entries, queues } = store.mutex as unknown as Record<'entries' | 'queues', Map<string, unknown>>;
  return [...entries.keys(), ...queues.keys()];
}

mutexContract('memory', () => store, remains);
