import { randomUUID } from 'node:crypto';
import { messageOf, StoreError } from '../model/errors.js';
import { after, idle, inTime, isSettledWithin, now } from '../util/clock.js';
import { detached } from '../util/detached.js';
import type { WakeUps } from './lease-driver.js';

/** Milliseconds until a connection that broke is replaced; so much longer each time. */
const RECONNECT_DELAY = 50;
const LONGEST_RECONNECT_DELAY = 500;
/** After this many useless connections in a row waiters poll. */
const MOST_VAIN_TIMES = 5;
/** Milliseconds until such a connection is tried again; twice as long each time. */
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 60_000;

/** Characters of a message: more than a store sends. What is longer is left alone unread. */
export const LONGEST_MESSAGE = 8_192;

/** The content of a message to an inbox: an owner may have been offered its key, or should ask after so many milliseconds. */
export interface Offer {
  readonly owner: string;
  readonly askIn?: number;
}

/** One offer by its fields, all of which must be known; `undefined`: it is not one. Anybody who may send to an inbox can send any text there. */
export function offerOf(owner: string | undefined, askIn: string | undefined, others: readonly string[]): Offer | undefined {
  if (!owner || others.length > 0) return undefined;
  if (askIn === undefined) return { owner };
  return /^\d{1,9}(\.\d{1,9})?$/.test(askIn) ? { owner, askIn: Number(askIn) } : undefined;
}

/** Writes a line to the log. */
export type Tell = (message: string) => void;

/** One connection of an inbox. */
export interface InboxConnection {
  /** Resolves when it listens. Rejects when it cannot; with a final {@link StoreError} if it never may. */
  readonly listening: Promise<unknown>;
  /** Resolves when it does not listen any more, because it broke or was closed. To the error, if there is one. */
  readonly ended: Promise<unknown>;
  close(): void;
}

/**
 * The inbox of this process at a store that can send messages. It is opened with the first wait, or the first lease that is renewed, over a connection of
 * its own, which is replaced when it breaks. It is open only when a message of its own has arrived. If it cannot be open, waiters poll.
 */
export abstract class Inbox implements WakeUps {
  isOpen = false;
  /** Milliseconds at least between two checks of a waiting process. */
  protected readonly checkInterval: number = 1_000;
  private readonly listeners = new Map<string, (askIn?: number) => void>();
  private connection: InboxConnection | undefined;
  private opening: Promise<void> | undefined;
  private checkedAt = -Infinity;
  private isTried = false;
  private debug: Tell | undefined;

  /**
   * @param storeName for messages.
   * @param requestTimeout milliseconds within which a message of our own must arrive.
   * @param advice what the store must allow.
   * @param listenTimeout milliseconds within which a connection must listen.
   */
  constructor(
    private readonly storeName: string,
    private readonly requestTimeout: number,
    private readonly advice: string,
    private readonly listenTimeout = requestTimeout,
  ) {}

  open(warn: Tell, debug?: Tell): Promise<void> {
    this.debug ??= debug;
    if (this.opening) return this.opening;
    const giveUp = (why: string): void => warn(`${this.storeName} waiters cannot be woken and poll instead: ${why}.`);
    const opening: Promise<void> = new Promise((resolve) => {
      const tried = (): void => {
        // It may have been closed meanwhile, which is not to be an interruption.
        if (this.opening === opening) this.isTried = true;
        resolve();
      };
      detached(
        () =>
          void this.keepOpen(giveUp, tried)
            .catch((error: unknown) => giveUp(messageOf(error)))
            .finally(tried),
      );
    });
    return (this.opening = opening);
  }

  /** Opens it for operators. Resolves within a `requestTimeout` to whether it is open. */
  async openForBus(warn: Tell, debug?: Tell): Promise<boolean> {
    await isSettledWithin(this.requestTimeout, this.open(warn, debug));
    return this.isOpen;
  }

  get state(): WakeUps['state'] {
    return this.isTried && !this.isOpen ? 'interrupted' : 'woken';
  }

  listen(owner: string, wake: (askIn?: number) => void): () => void {
    this.listeners.set(owner, wake);
    return () => this.listeners.delete(owner);
  }

  /** A silent connection may be broken, or lead to a server that is no longer the master. */
  check(): void {
    const { connection } = this;
    if (!this.isOpen || !connection || now() < this.checkedAt + this.checkInterval) return;
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
    this.opening = this.debug = undefined;
    this.isOpen = this.isTried = false;
  }

  /**
   * Receives a text: anybody that may send to the inbox can send anything. It never throws: the client that has read it would not catch that, and the
   * process would end.
   */
  received(text: string): void {
    try {
      if (this.read(text)) return;
    } catch {
      // It is not even a text.
    }
    this.dropped();
  }

  /** Calls {@link wake} with each owner of a message. False: some of it is no message. */
  protected abstract read(text: string): boolean;

  /** Makes a connection that calls {@link received} with what arrives. If it throws, the user gets the error, and the inbox is not opened. */
  protected abstract connect(): InboxConnection;

  /** Sends a message for this owner to the inbox, as a release does. False: the store knows that it has no listener. */
  protected abstract echo(owner: string): Promise<boolean>;

  /** The inbox has no listener for now, and may never have one. */
  protected refused(): void {
    this.wakeAll();
  }

  /** A message for the owner has arrived. False: this owner does not wait here. */
  protected wake(owner: string, askIn?: number): boolean {
    const wake = this.listeners.get(owner);
    wake?.(askIn);
    return wake !== undefined;
  }

  private dropped(): void {
    this.debug?.(`A message to the ${this.storeName} inbox of this process is not valid: it was dropped.`);
  }

  private wakeAll(): void {
    for (const wake of [...this.listeners.values()]) wake();
  }

  /** @param tried is called when it is open, or when it is clear that it cannot be for now. */
  private async keepOpen(warn: (why: string) => void, tried: () => void): Promise<void> {
    for (let failures = 0, vainTimes = -MOST_VAIN_TIMES; ;) {
      const connection = (this.connection = this.connect());
      const problem = await this.problemOf(connection);
      if (!problem && this.connection === connection) {
        failures = 0;
        vainTimes = -MOST_VAIN_TIMES;
        this.isOpen = true;
        tried();
        // Messages that were sent meanwhile are lost.
        this.wakeAll();
        await connection.ended;
      }
      connection.close();
      tried();
      if (this.connection !== connection) return;
      this.isOpen = false;
      const isFinal = problem?.transient === false;
      // A store that does not answer is an outage, which may be over at any time.
      const isVain = isFinal || (problem !== undefined && (await this.answers()));
      if (this.connection !== connection) return;
      let pause = Math.min(RECONNECT_DELAY * ++failures, LONGEST_RECONNECT_DELAY);
      if (isVain) vainTimes = Math.max(vainTimes + 1, isFinal ? 1 : -Infinity);
      if (isVain && vainTimes > 0) {
        if (vainTimes === 1) warn(isFinal ? `${messageOf(problem)}: ${this.advice}` : messageOf(problem));
        this.refused();
        pause = Math.min(FIRST_PAUSE * 2 ** (vainTimes - 1), LONGEST_PAUSE);
      }
      await idle(pause);
      if (this.connection !== connection) return;
    }
  }

  /** `undefined`: it is open. A final one will hardly pass by itself. */
  private async problemOf(connection: InboxConnection): Promise<StoreError | undefined> {
    const { listenTimeout } = this;
    // Something between may accept a connection, and swallow what is said over it.
    const silent = (): StoreError => new StoreError(`the connection does not listen within ${listenTimeout} ms`, { transient: true });
    const hearing = inTime(listenTimeout, connection.listening, silent).then(() => this.isHeard());
    const outcome = await Promise.race([hearing, connection.ended]).catch((error: unknown) => error);
    if (outcome === true) return undefined;
    if (outcome instanceof StoreError) return outcome;
    const what = outcome === false ? 'messages to the channel do not arrive from the server that has the locks' : 'the connection breaks';
    return new StoreError(outcome instanceof Error ? outcome.message : what, { transient: true, cause: outcome });
  }

  /** Whether the store answers over the connections that also release. A refusal is an answer. */
  private answers(): Promise<boolean> {
    return this.echo(`echo:${randomUUID()}`).then(
      () => true,
      (error: unknown) => error instanceof StoreError && !error.transient,
    );
  }

  /**
   * Whether a message arrives that is sent over the connections that also release, and the store knows that we listen. One of the two alone is also
   * true at a server that was the master before, or on a connection that is half open.
   */
  private async isHeard(): Promise<boolean> {
    const echo = `echo:${randomUUID()}`;
    const arrived = new Promise<boolean>((resolve) => {
      this.listeners.set(echo, () => resolve(true));
      // After a blocked event loop the message may have arrived already: it is read before this runs.
      after(this.requestTimeout, () => setImmediate(() => resolve(false))).unref();
    });
    try {
      return (await this.echo(echo)) && (await arrived);
    } finally {
      this.listeners.delete(echo);
    }
  }
}
