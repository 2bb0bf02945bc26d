import { randomUUID } from 'node:crypto';
import { StoreError } from '../model/errors.js';
import { after, idle, now } from '../util/clock.js';
import { detached } from '../util/detached.js';
import type { WakeUps } from './lease-driver.js';

const CHECK_INTERVAL = 1000;
/** Milliseconds until a connection that broke is replaced; so much longer each time. */
const RECONNECT_DELAY = 50;
const LONGEST_RECONNECT_DELAY = 500;
/** Connections in a row on which nothing arrives, until waiters poll. */
const MOST_DEAF_TIMES = 5;
/** Milliseconds until an inbox in which nothing arrives is tried again; twice as long each time. */
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 60_000;

/** One connection of an inbox. */
export interface InboxConnection {
  /** Resolves when it listens. Rejects when it cannot; with a final {@link StoreError} if it never may. */
  readonly listening: Promise<unknown>;
  /** Resolves when it listens no more: it broke, or was closed. */
  readonly ended: Promise<unknown>;
  close(): void;
}

/**
 * The inbox of this process at a store that can send messages. It is opened with the first wait, over a connection of its own, which is replaced when
 * it breaks. It is open only when a message of its own has arrived. Where that cannot be, waiters poll.
 */
export abstract class Inbox implements WakeUps {
  isOpen = false;
  private readonly listeners = new Map<string, (askIn?: number) => void>();
  private connection: InboxConnection | undefined;
  private opening: Promise<void> | undefined;
  private checkedAt = -Infinity;
  private isTried = false;

  /**
   * @param storeName for messages.
   * @param requestTimeout milliseconds within which a message of our own must arrive.
   * @param advice what the store must allow.
   */
  constructor(
    private readonly storeName: string,
    private readonly requestTimeout: number,
    private readonly advice: string,
  ) {}

  open(warn: (message: string) => void): Promise<void> {
    this.opening ??= new Promise((resolve) => {
      const tried = (): void => {
        this.isTried = true;
        resolve();
      };
      const giveUp = (why: string): void => warn(`${this.storeName} waiters cannot be woken and poll instead: ${why}.`);
      detached(
        () =>
          void this.keepOpen(giveUp, tried)
            .catch((error: unknown) => giveUp((error as Error).message))
            .finally(tried),
      );
    });
    return this.opening;
  }

  get state(): WakeUps['state'] {
    return this.isTried && !this.isOpen ? 'interrupted' : 'woken';
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.listeners.set(owner, wake);
    return () => this.listeners.delete(owner);
  }

  /** A silent connection may be a broken one, or lead to a server that is the master no more. One look a second at most. */
  check(): void {
    const { connection } = this;
    if (!this.isOpen || !connection || now() < this.checkedAt + CHECK_INTERVAL) return;
    this.checkedAt = now();
    this.isHeard().then(
      (isHeard) => {
        if (!isHeard) connection.close();
      },
      () => undefined,
    );
  }

  /** It may be opened again: the store of a client that is not ours may be used after it was closed. */
  close(): void {
    this.connection?.close();
    this.connection = undefined;
    this.opening = undefined;
    this.isOpen = this.isTried = false;
  }

  /** Makes a connection that calls {@link wake} with what arrives. What it throws is told to the user, and the inbox is not opened. */
  protected abstract connect(): InboxConnection;

  /** Sends a message for this owner to the inbox, as a release does. False: the store knows that nobody listens there. */
  protected abstract echo(owner: string): Promise<boolean>;

  /** Nobody listens to the inbox for now, and maybe never will. */
  protected refused(): void {
    this.wakeAll();
  }

  /** A message for the owner has arrived. False: nobody here waits by this name. */
  protected wake(owner: string, askIn?: number): boolean {
    const wake = this.listeners.get(owner);
    wake?.(askIn);
    return wake !== undefined;
  }

  private wakeAll(): void {
    for (const wake of [...this.listeners.values()]) wake();
  }

  /** @param tried is called when it is open, or when it is clear that it cannot be for now. @throws {StoreError} if it never can. */
  private async keepOpen(warn: (why: string) => void, tried: () => void): Promise<void> {
    for (let failures = 0, deafTimes = 0; ;) {
      const connection = (this.connection = this.connect());
      const outcome = await this.outcomeOf(connection);
      if (outcome === 'heard' && this.connection === connection) {
        failures = deafTimes = 0;
        this.isOpen = true;
        tried();
        // What was said meanwhile is lost.
        this.wakeAll();
        await connection.ended;
      }
      connection.close();
      tried();
      if (this.connection !== connection) return;
      this.isOpen = false;
      let pause = Math.min(RECONNECT_DELAY * ++failures, LONGEST_RECONNECT_DELAY);
      const vainly = outcome === 'deaf' ? deafTimes++ - MOST_DEAF_TIMES : -1;
      if (vainly >= 0) {
        if (vainly === 0) warn('messages to the channel do not arrive from the server that has the locks');
        this.refused();
        pause = Math.min(FIRST_PAUSE * 2 ** vainly, LONGEST_PAUSE);
      }
      await idle(pause);
      if (this.connection !== connection) return;
    }
  }

  private async outcomeOf(connection: InboxConnection): Promise<'heard' | 'deaf' | 'broken'> {
    const hearing = connection.listening.then(() => this.isHeard());
    try {
      const isHeard = await Promise.race([hearing, connection.ended]);
      if (typeof isHeard !== 'boolean') return 'broken';
      return isHeard ? 'heard' : 'deaf';
    } catch (error) {
      if (!(error instanceof StoreError) || error.transient) return 'broken';
      connection.close();
      this.refused();
      throw new StoreError(`${error.message}: ${this.advice}`, { transient: false, cause: error });
    }
  }

  /**
   * Whether a message that is sent over the connections that also release arrives, and the store knows that we listen: one of them alone holds also
   * at a server that was the master before, or on a connection that is half open.
   */
  private async isHeard(): Promise<boolean> {
    const echo = `echo:${randomUUID()}`;
    const arrived = new Promise<boolean>((resolve) => {
      this.listeners.set(echo, () => resolve(true));
      // After a stall of the event loop the message may be here already: it is read before this runs.
      after(this.requestTimeout, () => setImmediate(() => resolve(false))).unref();
    });
    try {
      return (await this.echo(echo)) && (await arrived);
    } finally {
      this.listeners.delete(echo);
    }
  }
}
