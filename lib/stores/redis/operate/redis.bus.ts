import type { Bus, BusTopic } from '../../../core/store/inspector.js';
import { TopicBus } from '../../../core/store/topic-bus.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { integerOf } from '../scripts/redis.replies.js';

const CHANNEL = 'nestjs-distributed-lock:';

/** Messages between processes on Redis. */
export class RedisBus extends TopicBus {
  /** The database of the options: a duplicate has the one that the app has selected. */
  private readonly db: number;

  constructor(
    private readonly redis: RedisConnection,
    inbox: string,
    open: Bus['open'],
  ) {
    super(inbox, open, redis.requestTimeout);
    const { isCluster, options } = redis.client;
    this.db = (!isCluster && options?.db) || 0;
  }

  /** A node of a Cluster counts its own listeners only. A process that asks then waits for the whole time that answers may take. */
  async publish(topic: BusTopic, text: string): Promise<number> {
    const count = integerOf(await this.redis.request((client) => client.publish(this.channelOf(topic), text)));
    return this.redis.client.isCluster ? Infinity : count;
  }

  /** Redis delivers messages to the clients of all databases. */
  protected override channelOf(topic: BusTopic): string {
    const { db } = this;
    const { keyPrefix } = this.redis;
    return CHANNEL + topic + (db === 0 && keyPrefix === '' ? '' : `@${db}:${keyPrefix}`);
  }
}
