import { randomUUID } from 'node:crypto';
import { now } from '../../core/clock.js';
import type { TokenGrant, WakeUps } from '../../core/driver.js';
import { StoreError } from '../../core/errors.js';
import { outside } from '../../core/outside.js';
import { storeErrorOf, type RedisClient } from './redis.connection.js';

/** Milliseconds that a waiter has to take the lock that it is offered. */
const OFFER = 1000;
/** Milliseconds for which a process that had the lock just now is surely alive, or as good as: a grant to a dead one lasts for its `ttl`. */
const READY = 500;
const CHECK_INTERVAL = 1000;
const MOST_DEAF_TIMES = 5;

/**
 * The inbox of this process: one channel on one connection of its own, opened with the first wait. A release tells it which owner is offered
 * its lock. Where the server does not allow that, waiters poll.
 */
export class RedisWakeUps implements WakeUps {
  readonly inbox = `nestjs-distributed-lock:inbox:${randomUUID()}`;
  isOpen = false;
  private readonly listeners = new Map<string, (grant?: TokenGrant) => void>();
  private readonly places = new Map<string, string>();
  /** Places that name the inbox after it was refused: their owners leave them, and take others. */
  private readonly refusedPlaces = new Map<string, string>();
  private subscriber: RedisClient | undefined;
  private opening: Promise<void> | undefined;
  /** How often in a row nobody was said to hear our own message. */
  private deafTimes = 0;
  private checkedAt = -Infinity;

  /** @param publish asks the server, by the connection that also releases, whether it may publish. */
  constructor(
    private readonly client: RedisClient,
    private readonly publish: (channel: string) => Promise<unknown>,
  ) {}

  open(warn: (message: string) => void): Promise<void> {
    // A message of a Cluster says nothing of who has heard it, and its client listens in other ways: waiters poll there.
    this.opening ??= this.client.isCluster
      ? Promise.resolve()
      : outside(() => this.subscribe(warn)).catch((error: unknown) => warn(cannotWake((error as Error).message)));
    return this.opening;
  }

  listen(owner: string, wake: (grant?: TokenGrant) => void): () => void {
    this.listeners.set(owner, wake);
    return () => this.forget(owner);
  }

  /** A silent connection may be a broken one, or lead to a server that is the master no more. One request a second at most. */
  check(): void {
    const { subscriber } = this;
    if (!this.isOpen || !subscriber || now() < this.checkedAt + CHECK_INTERVAL) return;
    this.checkedAt = now();
    this.publish(this.inbox).then(
      (heard) => {
        if (Number(heard) > 0 || this.subscriber !== subscriber) return;
        this.isOpen = false;
        subscriber.disconnect(true);
      },
      () => undefined,
    );
  }

  /**
   * How the queue knows an owner; see mutex/acquire.lua. It is the same whenever the owner asks, but that it names the inbox once it is open.
   *
   * @param tokens to reserve with a grant, of an owner that is ready for one.
   */
  placeOf(owner: string, ttl: number, holding: readonly string[], tokens = 0): string {
    const inbox = this.isOpen ? this.inbox : '';
    const offer = inbox === '' ? OFFER : Math.min(ttl, OFFER);
    const ready = tokens > 0 && inbox !== '' ? ` ${ttl} ${tokens} ${Math.min(Math.floor(ttl / 4), READY)}` : '';
    const known = this.places.get(owner) ?? [owner, inbox, `${offer}${ready}`, ...holding].join('\n');
    const place = inbox === '' ? known : known.replace('\n\n', `\n${inbox}\n`);
    this.places.set(owner, place);
    return place;
  }

  /** Empty: it has no place. */
  knownPlaceOf(owner: string): string {
    return this.refusedPlaces.get(owner) ?? this.places.get(owner) ?? '';
  }

  /** The place that it has to leave before it asks for another one. */
  refusedPlaceOf(owner: string): string | undefined {
    // There are hardly ever any, and the look would have each owner hashed.
    return this.refusedPlaces.size > 0 ? this.refusedPlaces.get(owner) : undefined;
  }

  hasLeft(owner: string): void {
    this.refusedPlaces.delete(owner);
  }

  forget(owner: string): void {
    this.listeners.delete(owner);
    this.places.delete(owner);
    this.refusedPlaces.delete(owner);
  }

  /** A store of a client that is not ours may be used again after it was closed. */
  close(): void {
    this.subscriber?.disconnect();
    this.subscriber = undefined;
    this.opening = undefined;
    this.isOpen = false;
  }

  /** @throws whatever a client that is not ours throws when it is asked for another connection. */
  private async subscribe(warn: (message: string) => void): Promise<void> {
    const subscriber = this.client.duplicate({
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
      const refuse = (why: string): void => {
        subscriber.disconnect();
        warn(cannotWake(why));
        for (const [owner, place] of this.places) {
          if (!place.includes(`\n${this.inbox}\n`)) continue;
          this.refusedPlaces.set(owner, place);
          this.places.delete(owner);
        }
        this.wakeAll();
      };
      const again = (): void => subscriber.disconnect(true);
      subscriber.on('error', () => undefined);
      subscriber.on('message', (_channel, message) => {
        const [owner = '', token] = (message as string).split('\n');
        this.listeners.get(owner)?.(token === undefined ? undefined : { granted: true, token: Number(token) });
      });
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
            if (!isHearing) return this.deafTimes++ < MOST_DEAF_TIMES ? again() : refuse('messages to the channel are heard by nobody');
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
            if (transient) again();
            else refuse(`${message}: allow the channels nestjs-distributed-lock:inbox:*`);
          },
        );
      });
      subscriber.connect().catch(() => undefined);
    });
  }

  private wakeAll(): void {
    for (const wake of [...this.listeners.values()]) wake();
  }

  private async hearing(subscriber: RedisClient): Promise<boolean> {
    await subscriber.subscribe(this.inbox);
    return Number(await this.publish(this.inbox)) > 0;
  }
}

function cannotWake(why: string): string {
  return `Redis waiters cannot be woken and poll instead: ${why}.`;
}
