import type { Bus, BusTopic } from '../../core/store/inspector.js';
import type { RedisClient, RedisConnection } from './redis.connection.js';
import { integerOf } from './redis.replies.js';

const CHANNEL = 'nestjs-distributed-lock:';

/** Messages between processes. They come over the connection of the inbox: a process that has never waited hears none. */
export class RedisBus implements Bus {
  private readonly listeners = new Map<string, Set<(text: string) => void>>();
  private subscriber: RedisClient | undefined;

  constructor(
    private readonly redis: RedisConnection,
    readonly open: () => Promise<boolean>,
  ) {}

  async listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void> {
    const channel = CHANNEL + topic;
    const listeners = this.listeners.get(channel) ?? new Set();
    const own = (text: string): void => hear(text);
    this.listeners.set(channel, listeners.add(own));
    if (listeners.size === 1) await this.subscribe(channel);
    return () => {
      if (!listeners.delete(own) || listeners.size > 0) return;
      this.listeners.delete(channel);
      this.subscriber?.unsubscribe(channel).catch(() => undefined);
    };
  }

  async publish(topic: BusTopic, text: string): Promise<number> {
    return integerOf(await this.redis.request((client) => client.publish(CHANNEL + topic, text)));
  }

  /** From now on messages come over this connection. */
  async connected(subscriber: RedisClient): Promise<void> {
    this.subscriber = subscriber;
    await Promise.all([...this.listeners.keys()].map((channel) => this.subscribe(channel)));
  }

  received(channel: string, text: string): void {
    for (const hear of [...(this.listeners.get(channel) ?? [])]) hear(text);
  }

  /** A user who may not listen is not seen by operators, but its waiters are woken all the same. */
  private async subscribe(channel: string): Promise<void> {
    await this.subscriber?.subscribe(channel).catch(() => undefined);
  }
}
