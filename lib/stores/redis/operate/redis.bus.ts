import type { Bus, BusTopic } from '../../../core/store/inspector.js';
import { isSettledWithin } from '../../../core/util/clock.js';
import type { RedisClient } from '../connection/redis.client.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { integerOf } from '../scripts/redis.replies.js';

const CHANNEL = 'nestjs-distributed-lock:';

interface Topic {
  readonly listeners: Set<(text: string) => void>;
  /** Settles when it is heard, or cannot be. */
  subscribed: Promise<unknown>;
}

/** Messages between processes. They come over the connection of the inbox: a process that has never waited hears none. */
export class RedisBus implements Bus {
  private readonly topics = new Map<string, Topic>();
  private subscriber: RedisClient | undefined;

  /**
   * @param connection the name of the inbox.
   * @param openInbox resolves to whether it is open.
   */
  constructor(
    private readonly redis: RedisConnection,
    readonly connection: string,
    private readonly openInbox: (...log: Parameters<Bus['open']>) => Promise<boolean>,
  ) {}

  async open(...log: Parameters<Bus['open']>): Promise<boolean> {
    let isOpen = false;
    const opening = this.openInbox(...log).then((outcome) => (isOpen = outcome));
    await isSettledWithin(this.redis.requestTimeout, opening);
    return isOpen;
  }

  async listen(topic: BusTopic, hear: (text: string) => void): Promise<() => void> {
    const channel = this.channelOf(topic);
    const own = (text: string): void => hear(text);
    const known = this.topics.get(channel) ?? { listeners: new Set(), subscribed: this.subscribe(channel) };
    this.topics.set(channel, known);
    known.listeners.add(own);
    await known.subscribed;
    return () => {
      if (!known.listeners.delete(own) || known.listeners.size > 0) return;
      this.topics.delete(channel);
      this.subscriber?.unsubscribe(channel).catch(() => undefined);
    };
  }

  /** A node of a Cluster counts its own listeners only. A process that asks then waits for the whole time that answers may take. */
  async publish(topic: BusTopic, text: string): Promise<number> {
    const count = integerOf(await this.redis.request((client) => client.publish(this.channelOf(topic), text)));
    return this.redis.client.isCluster ? Infinity : count;
  }

  /** From now on messages come over this connection. */
  async connected(subscriber: RedisClient): Promise<void> {
    this.subscriber = subscriber;
    for (const [channel, topic] of this.topics) topic.subscribed = this.subscribe(channel);
    await Promise.all([...this.topics.values()].map(({ subscribed }) => subscribed));
  }

  received(channel: string, text: string): void {
    for (const hear of [...(this.topics.get(channel)?.listeners ?? [])]) hear(text);
  }

  /** Redis delivers messages to the clients of all databases. Processes with other keys must not hear each other. */
  private channelOf(topic: BusTopic): string {
    const { keyPrefix, client } = this.redis;
    const db = (!client.isCluster && client.options?.db) || 0;
    return CHANNEL + topic + (db === 0 && keyPrefix === '' ? '' : `@${db}:${keyPrefix}`);
  }

  /**
   * A user who may not listen is not seen by operators, but its waiters are woken all the same. A connection that is half open gives no answer, and is
   * not waited for.
   */
  private subscribe(channel: string): Promise<unknown> {
    const { subscriber } = this;
    if (!subscriber) return Promise.resolve();
    return isSettledWithin(this.redis.requestTimeout, subscriber.subscribe(channel));
  }
}
