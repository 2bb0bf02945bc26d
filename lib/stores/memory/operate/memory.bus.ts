import type { Bus, BusTopic } from '../../../core/store/inspector.js';

/** Messages between the {@link Locks} of one process. */
export class MemoryBus implements Bus {
  readonly connection = 'memory';
  private readonly listeners = new Set<{ readonly topic: BusTopic; readonly hear: (text: string) => void }>();

  open(): Promise<boolean> {
    return Promise.resolve(true);
  }

  listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void> {
    const listener = { topic, hear };
    this.listeners.add(listener);
    return Promise.resolve(() => void this.listeners.delete(listener));
  }

  publish(topic: BusTopic, text: string): Promise<number> {
    const all = [...this.listeners].filter((listener) => listener.topic === topic);
    for (const { hear } of all) queueMicrotask(() => hear(text));
    return Promise.resolve(Math.min(all.length, 1));
  }
}
