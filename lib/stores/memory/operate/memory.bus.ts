import type { BusTopic } from '../../../core/store/inspector.js';
import { TopicBus } from '../../../core/store/topic-bus.js';

/** Messages between the {@link Locks} of one process. */
export class MemoryBus extends TopicBus {
  constructor() {
    super('memory', () => Promise.resolve(true), Infinity);
  }

  /** Later, as a message would come. */
  publish(topic: BusTopic, text: string): Promise<number> {
    if (!this.isListenedTo(topic)) return Promise.resolve(0);
    queueMicrotask(() => this.received(topic, text));
    return Promise.resolve(1);
  }
}
