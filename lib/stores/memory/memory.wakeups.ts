import { TopicBus } from '../../core/store/topic-bus.js';
import type { RecordWakeUps } from '../records/record.table.js';
import { readMessage } from '../records/record.texts.js';

/** Within a process a callback is all it takes. */
export class MemoryWakeUps implements RecordWakeUps {
  readonly isOpen = true;
  readonly inbox = 'memory';
  private readonly listeners = new Map<string, (askIn?: number) => void>();

  open(): Promise<void> {
    return Promise.resolve();
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.listeners.set(owner, wake);
    return () => void this.listeners.delete(owner);
  }

  /** Later, as a message would come: not in the midst of a step. */
  received(text: string): void {
    readMessage(text, (owner, askIn) => queueMicrotask(() => this.listeners.get(owner)?.(askIn)));
  }
}

/** Messages between the {@link Locks} of one process. */
export function memoryBus(): TopicBus {
  const bus: TopicBus = new TopicBus({
    connection: 'memory',
    open: () => Promise.resolve(true),
    // Later, as a message would come.
    publish(topic, text) {
      if (!bus.isListenedTo(topic)) return Promise.resolve(0);
      queueMicrotask(() => bus.received(topic, text));
      return Promise.resolve(1);
    },
  });
  return bus;
}
