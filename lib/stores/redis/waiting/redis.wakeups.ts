import { randomUUID } from 'node:crypto';
import { StoreError } from '../../../core/model/errors.js';
import { Inbox, type InboxConnection, LONGEST_MESSAGE, type Offer, offerOf, type Tell } from '../../../core/store/inbox.js';
import type { AcquireRequest } from '../../../core/store/lease-driver.js';
import { TopicBus, type TopicBusOptions } from '../../../core/store/topic-bus.js';
import { storeErrorOf } from '../connection/redis.errors.js';
import { disconnect, type RedisClient } from '../connection/redis.client.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { integerOf, keyBeside } from '../redis.values.js';
import { QueueEntries } from './queue.entries.js';

const BUS = 'nestjs-distributed-lock:';
const CHANNEL = `${BUS}inbox:`;
/** In the name of an inbox on a Cluster, whose nodes know their own listeners only: the scripts count none there; see lua/prelude.lua. */
const UNCOUNTED = 'cluster:';

/**
 * The inbox of this process on Redis: a channel. A release tells it which owner is offered its lock. Each node of a Cluster passes messages on to all
 * others, so that a connection to any of them receives what is published at any.
 */
export class RedisWakeUps extends Inbox {
  readonly inbox: string;
  readonly entries = new QueueEntries();
  readonly bus: TopicBus;
  /** Where it listens. */
  private node: RedisClient | undefined;

  constructor(private readonly redis: RedisConnection) {
    super('Redis', redis.requestTimeout, `allow the channels ${CHANNEL}*`);
    this.inbox = CHANNEL + (redis.client.isCluster ? UNCOUNTED : '') + randomUUID();
    this.bus = busOf(redis, this.inbox, (...log) => this.openForBus(...log));
  }

  override async open(warn: Tell, debug?: Tell): Promise<void> {
    const { redis } = this;
    // A Cluster client knows its nodes once it is connected.
    if (redis.client.isCluster && !this.nodeToListenAt()) await redis.request((client) => client.call('TIME')).catch(() => undefined);
    await super.open(warn, debug);
  }

  override listen(owner: string, wake: (askIn?: number) => void): () => void {
    const stop = super.listen(owner, wake);
    return () => {
      stop();
      this.entries.forget(owner);
    };
  }

  /** The member by which an owner queues. @param more lines that the kind of lock adds. */
  entryOf({ owner, key, ttl }: Pick<AcquireRequest, 'owner' | 'key' | 'ttl'>, more: readonly string[] = []): string {
    return this.entries.of(owner, key, this.isOpen ? this.inbox : '', ttl, more);
  }

  protected connect(): InboxConnection {
    const { redis, inbox, bus } = this;
    this.node = redis.client.isCluster ? this.nodeToListenAt() : redis.client;
    if (!this.node) return NOWHERE;
    return new Subscriber(this.node, redis.requestTimeout, inbox, bus, (message) => this.received(message));
  }

  /**
   * Chooses any node of a Cluster but the last one, a replica rather than a master, which has more to do. Not the subscriber of the Cluster client: that one
   * changes its node without a sign, and what is said meanwhile would be missed.
   */
  private nodeToListenAt(): RedisClient | undefined {
    const { client } = this.redis;
    const [replicas, masters] = (['slave', 'master'] as const).map((role) => client.nodes?.(role) ?? []);
    const all = replicas!.length > 0 ? replicas! : masters!;
    const others = all.filter((node) => node !== this.node);
    const nodes = others.length > 0 ? others : all;
    return nodes[Math.floor(Math.random() * nodes.length)];
  }

  protected async echo(owner: string): Promise<boolean> {
    const { redis, inbox } = this;
    if (redis.client.isCluster) {
      await redis.request((client) => client.call('publish', inbox, owner));
      return true;
    }
    const [counts] = await Promise.all([
      redis.request((client) => client.call('pubsub', 'NUMSUB', inbox)).catch(unknownIfRefused),
      redis.request((client) => client.call('publish', inbox, owner)),
    ]);
    return Number((counts as unknown[])[1]) > 0;
  }

  protected override refused(): void {
    const { redis } = this;
    for (const { key, text } of this.entries.withoutInbox(this.inbox)) {
      redis.request((client) => client.call('ZREM', keyBeside(key, 'queue', redis.keyPrefix), text)).catch(() => undefined);
    }
    // Waiters ask after these commands.
    super.refused();
  }

  protected read(message: string): boolean {
    const offer = messageOf(message);
    if (offer) this.wake(offer.owner, offer.askIn);
    return offer !== undefined;
  }
}

/** Messages between processes. */
function busOf(redis: RedisConnection, connection: string, open: TopicBusOptions['open']): TopicBus {
  return new TopicBus({
    connection,
    open,
    requestTimeout: redis.requestTimeout,
    // Redis delivers messages to the clients of all databases.
    channelOf(topic) {
      const { db = 0 } = redis.client.options;
      return BUS + topic + (db === 0 && redis.keyPrefix === '' ? '' : `@${db}:${redis.keyPrefix}`);
    },
    // A node of a Cluster counts its own listeners only.
    async publish(channel, text) {
      const count = integerOf(await redis.request((client) => client.call('publish', channel, text)));
      return redis.client.isCluster ? Infinity : count;
    },
  });
}

/** The parts of a message; `undefined`: it is not one. Its second line is the key. */
function messageOf(text: string): Offer | undefined {
  if (text.length > LONGEST_MESSAGE) return undefined;
  const [owner, , askIn, ...others] = text.split('\n');
  return offerOf(owner, askIn, others);
}

/** No node of a Cluster is known for now. */
const NOWHERE: InboxConnection = {
  get listening() {
    return Promise.reject(new StoreError('No node of the Redis Cluster is known.', { transient: true }));
  },
  ended: new Promise(() => undefined),
  close: () => undefined,
};

class Subscriber implements InboxConnection {
  readonly listening: Promise<void>;
  readonly ended: Promise<unknown>;
  private readonly client: RedisClient;
  private lastError: unknown;
  private end: () => void = () => undefined;

  constructor(
    client: RedisClient,
    requestTimeout: number,
    private readonly inbox: string,
    private readonly bus: TopicBus,
    received: (message: string) => void,
  ) {
    const subscriber = client.duplicate({
      lazyConnect: true,
      autoResubscribe: false,
      maxRetriesPerRequest: null,
      retryStrategy: null,
      // Nothing is asked of it, so that its silence is no sign of a broken connection.
      socketTimeout: undefined,
      // The next sentinel may answer.
      sentinelCommandTimeout: Math.ceil(requestTimeout / 2),
    });
    this.client = subscriber;
    subscriber.on('error', (error) => (this.lastError = error));
    subscriber.on('message', (channel, message) => {
      if (channel === inbox) received(message as string);
      else bus.received(channel as string, message as string);
    });
    this.ended = new Promise((resolve) => {
      this.end = () => resolve(this.lastError && storeErrorOf(this.lastError));
      for (const event of ['close', 'end']) subscriber.on(event, this.end);
    });
    this.listening = this.subscribe();
  }

  /** ioredis would begin a timer for a connection that is over already, which keeps the process alive. It may never tell that one has ended. */
  close(): void {
    this.end();
    if (this.client.status !== 'end') disconnect(this.client);
  }

  private async subscribe(): Promise<void> {
    try {
      await this.client.connect();
      this.client.stream?.unref?.();
      await this.client.subscribe(this.inbox);
      await this.bus.connected((verb, channel) => this.client[verb](channel));
    } catch (error) {
      // A client says no more than that it is closed.
      throw storeErrorOf(this.lastError ?? error);
    }
  }
}

/** If this user may not ask who listens, the scripts cannot know either. */
function unknownIfRefused(error: StoreError): [string, number] {
  if (error.transient) throw error;
  return ['', 1];
}
