import { randomUUID } from 'node:crypto';
import type { StoreError } from '../../core/model/errors.js';
import type { WakeUps } from '../../core/store/lease-driver.js';
import { Inbox, type InboxConnection } from '../../core/store/inbox.js';
import { RedisBus } from './redis.bus.js';
import { storeErrorOf } from './redis.errors.js';
import type { RedisClient, RedisConnection } from './redis.connection.js';
import { RedisPlaces } from './redis.places.js';

const CHANNEL = 'nestjs-distributed-lock:inbox:';

/** The inbox of this process on Redis: a channel. A release tells it which owner is offered its lock. */
export class RedisWakeUps extends Inbox {
  readonly inbox = CHANNEL + randomUUID();
  readonly places = new RedisPlaces();
  readonly bus: RedisBus;

  /** @param giveBack gives a key back that is offered to an owner which wants it no more. */
  constructor(
    private readonly redis: RedisConnection,
    private readonly giveBack: (key: string, owner: string) => void,
  ) {
    super('Redis', redis.requestTimeout, `allow the channels ${CHANNEL}*`);
    this.bus = new RedisBus(redis, this.inbox, async (warn) => {
      await this.open(warn);
      return this.isOpen;
    });
  }

  override open(warn: (message: string) => void): Promise<void> {
    // A message of a Cluster says nothing of who has heard it, and its client listens in other ways: waiters poll there.
    return this.redis.client.isCluster ? Promise.resolve() : super.open(warn);
  }

  override get state(): WakeUps['state'] {
    return this.redis.client.isCluster ? 'polling' : super.state;
  }

  override listen(owner: string, wake: (askIn?: number) => void): () => void {
    const stop = super.listen(owner, wake);
    return () => {
      stop();
      this.places.forget(owner);
    };
  }

  /** The place in a queue of an owner that waits. */
  placeOf(owner: string, ttl: number, holding: readonly string[] = []): string {
    return this.places.placeOf(owner, this.isOpen ? this.inbox : '', ttl, holding);
  }

  protected connect(): InboxConnection {
    return new Subscriber(this.redis.client, this.inbox, this.bus, (message) => this.received(message));
  }

  protected async echo(owner: string): Promise<boolean> {
    const { redis, inbox } = this;
    const [counts] = await Promise.all([
      redis.request((client) => client.pubsub('NUMSUB', inbox)).catch(unknownIfRefused),
      redis.request((client) => client.publish(inbox, owner)),
    ]);
    return Number((counts as unknown[])[1]) > 0;
  }

  protected override refused(): void {
    this.places.refuse(this.inbox);
    super.refused();
  }

  private received(message: string): void {
    const [owner = '', key, askIn] = message.split('\n');
    if (this.wake(owner, askIn === undefined ? undefined : Number(askIn)) || key === undefined || askIn !== undefined) return;
    if (this.places.isDone(owner)) this.giveBack(key.slice(this.redis.keyPrefix.length), owner);
  }
}

class Subscriber implements InboxConnection {
  readonly listening: Promise<void>;
  readonly ended: Promise<void>;
  private readonly client: RedisClient;

  constructor(
    client: RedisClient,
    private readonly inbox: string,
    private readonly bus: RedisBus,
    received: (message: string) => void,
  ) {
    const subscriber = client.duplicate({
      lazyConnect: true,
      autoResubscribe: false,
      maxRetriesPerRequest: null,
      retryStrategy: null,
      // Nothing is asked of it, so that its silence is no sign of a broken connection.
      socketTimeout: undefined,
    });
    this.client = subscriber;
    subscriber.on('error', () => undefined);
    subscriber.on('message', (channel, message) => {
      if (channel === inbox) received(message as string);
      else bus.received(channel as string, message as string);
    });
    this.ended = new Promise((resolve) => {
      for (const event of ['close', 'end']) subscriber.on(event, () => resolve());
    });
    this.listening = this.subscribe();
  }

  close(): void {
    this.client.disconnect();
  }

  private async subscribe(): Promise<void> {
    try {
      await this.client.connect();
      await this.client.subscribe(this.inbox);
      await this.bus.connected(this.client);
    } catch (error) {
      throw storeErrorOf(error);
    }
  }
}

/** If this user may not ask who listens, the scripts cannot know either. */
function unknownIfRefused(error: StoreError): [string, number] {
  if (error.transient) throw error;
  return ['', 1];
}
