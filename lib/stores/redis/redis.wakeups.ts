import { randomUUID } from 'node:crypto';
import { after, now } from '../../core/util/clock.js';
import type { WakeUps } from '../../core/store/lease-driver.js';
import { StoreError } from '../../core/model/errors.js';
import { detached } from '../../core/util/detached.js';
import { RedisPlaces } from './redis.places.js';
import { storeErrorOf, type RedisClient, type RedisConnection } from './redis.connection.js';

const CHECK_INTERVAL = 1000;
const MOST_DEAF_TIMES = 5;
/** Milliseconds until an inbox in which nothing arrives is tried again; twice as long each time. */
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 60_000;

/**
 * The inbox of this process: one channel on one connection of its own, opened with the first wait. A release tells it which owner is offered
 * its lock. Where the server does not allow that, waiters poll.
 */
export class RedisWakeUps implements WakeUps {
  readonly inbox = `nestjs-distributed-lock:inbox:${randomUUID()}`;
  isOpen = false;
  private readonly listeners = new Map<string, (askIn?: number) => void>();
  readonly places = new RedisPlaces();
  private readonly echoes = new Map<string, () => void>();
  private subscriber: RedisClient | undefined;
  private opening: Promise<void> | undefined;
  /** How often in a row our own message did not arrive. */
  private deafTimes = 0;
  private retry: NodeJS.Timeout | undefined;
  private checkedAt = -Infinity;

  /** @param giveBack gives a key back that is offered to an owner which wants it no more. */
  constructor(
    private readonly connection: RedisConnection,
    private readonly giveBack: (key: string, owner: string) => void,
  ) {}

  open(warn: (message: string) => void): Promise<void> {
    // A message of a Cluster says nothing of who has heard it, and its client listens in other ways: waiters poll there.
    this.opening ??= this.connection.client.isCluster
      ? Promise.resolve()
      : detached(() => this.subscribe(warn)).catch((error: unknown) => warn(cannotWake((error as Error).message)));
    return this.opening;
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.listeners.set(owner, wake);
    return () => {
      this.listeners.delete(owner);
      this.places.forget(owner);
    };
  }

  /** A silent connection may be a broken one, or lead to a server that is the master no more. One look a second at most. */
  check(): void {
    const { subscriber } = this;
    if (!this.isOpen || !subscriber || now() < this.checkedAt + CHECK_INTERVAL) return;
    this.checkedAt = now();
    this.isHeard().then(
      (isHeard) => {
        if (isHeard || this.subscriber !== subscriber) return;
        this.isOpen = false;
        subscriber.disconnect(true);
      },
      () => undefined,
    );
  }

  /** The place in a queue of an owner that waits. */
  placeOf(owner: string, ttl: number, holding: readonly string[]): string {
    return this.places.placeOf(owner, this.isOpen ? this.inbox : '', ttl, holding);
  }

  /** A store of a client that is not ours may be used again after it was closed. */
  close(): void {
    this.subscriber?.disconnect();
    this.subscriber = undefined;
    clearTimeout(this.retry);
    this.opening = undefined;
    this.isOpen = false;
    this.deafTimes = 0;
  }

  /** @throws whatever a client that is not ours throws when it is asked for another connection. */
  private async subscribe(warn: (message: string) => void): Promise<void> {
    const subscriber = this.connection.client.duplicate({
      lazyConnect: true,
      // Each new connection subscribes by itself here, to know when it has.
      autoResubscribe: false,
      maxRetriesPerRequest: null,
      retryStrategy: (times: number) => Math.min(50 * times, 500),
      // Nothing is asked of it, so that its silence is no sign of a broken connection.
      socketTimeout: undefined,
    });
    this.subscriber = subscriber;
    return await new Promise((resolve) => {
      const again = (): void => subscriber.disconnect(true);
      subscriber.on('error', () => undefined);
      subscriber.on('message', (_channel, message) => this.received(message as string));
      subscriber.on('close', () => {
        if (this.subscriber === subscriber) this.isOpen = false;
        resolve();
      });
      // Of a connection that gives up by itself, as one to sentinels may.
      subscriber.on('end', () => resolve());
      subscriber.on('ready', () => {
        this.hearing(subscriber).then(
          (isHearing) => {
            resolve();
            if (this.subscriber !== subscriber) return;
            if (!isHearing) return this.isDeaf(subscriber, warn);
            this.deafTimes = 0;
            this.isOpen = true;
            // What was said meanwhile is lost.
            this.wakeAll();
          },
          (error: unknown) => {
            resolve();
            if (this.subscriber !== subscriber) return;
            const { message, transient } = error instanceof StoreError ? error : storeErrorOf(error);
            // Subscribed, but maybe not to where one publishes: only once more from the start tells.
            if (transient) return again();
            subscriber.disconnect();
            warn(cannotWake(`${message}: allow the channels nestjs-distributed-lock:inbox:*`));
            this.refused();
          },
        );
      });
      subscriber.connect().catch(() => undefined);
    });
  }

  private received(message: string): void {
    const [owner = '', key, askIn] = message.split('\n');
    const wake = this.listeners.get(owner);
    if (wake) wake(askIn === undefined ? undefined : Number(askIn));
    else if (key !== undefined && askIn === undefined && this.places.isDone(owner)) this.giveBack(this.withoutPrefix(key), owner);
    else if (key === undefined) this.echoes.get(owner)?.();
  }

  /** Our own message does not arrive here: after some tries waiters poll, and the inbox is tried again later. */
  private isDeaf(subscriber: RedisClient, warn: (message: string) => void): void {
    const times = this.deafTimes++ - MOST_DEAF_TIMES;
    if (times < 0) return subscriber.disconnect(true);
    subscriber.disconnect();
    if (times === 0) warn(cannotWake('messages to the channel do not arrive from the server that has the locks'));
    this.refused();
    this.retry = after(Math.min(FIRST_PAUSE * 2 ** times, LONGEST_PAUSE), () => {
      detached(() => subscriber.connect()).catch(() => undefined);
    }).unref();
  }

  private refused(): void {
    this.places.refuse(this.inbox);
    this.wakeAll();
  }

  private wakeAll(): void {
    for (const wake of [...this.listeners.values()]) wake();
  }

  private async hearing(subscriber: RedisClient): Promise<boolean> {
    await subscriber.subscribe(this.inbox);
    return this.isHeard();
  }

  /**
   * Whether a message that is sent over the connection that also releases arrives, and its server knows that we listen: one of them alone holds also
   * at a server that was the master before, or on a connection that is half open.
   */
  private async isHeard(): Promise<boolean> {
    const { connection, inbox, echoes } = this;
    const echo = `echo:${randomUUID()}`;
    const arrived = new Promise<boolean>((resolve) => {
      echoes.set(echo, () => resolve(true));
      // After a stall of the event loop the message may be here already: it is read before this runs.
      after(connection.requestTimeout, () => setImmediate(() => resolve(false))).unref();
    });
    try {
      const { client } = connection;
      const [count] = await Promise.all([
        connection.request(() => client.pubsub('NUMSUB', inbox)).catch(unknownIfRefused),
        connection.request(() => client.publish(inbox, echo)),
      ]);
      return Number((count as unknown[])[1]) > 0 && (await arrived);
    } finally {
      echoes.delete(echo);
    }
  }

  private withoutPrefix(key: string): string {
    return key.slice(this.connection.client.options?.keyPrefix?.length ?? 0);
  }
}

/** Where nobody may ask who listens, neither do the scripts know. */
function unknownIfRefused(error: StoreError): [string, number] {
  if (error.transient) throw error;
  return ['', 1];
}

function cannotWake(why: string): string {
  return `Redis waiters cannot be woken and poll instead: ${why}.`;
}
