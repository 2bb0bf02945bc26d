import { randomUUID } from 'node:crypto';
import { messageOf, StoreError } from '../model/errors.js';
import { after, idle, inTime, isSettledWithin, now } from '../util/clock.js';
import { detached } from '../util/detached.js';
import type { WakeUps } from './lease-driver.js';

/**
 * The end of a connection, and the pause before the next one.
 *
 * | outcome  |                                                          | milliseconds until the next one                        |
 * |----------|----------------------------------------------------------|--------------------------------------------------------|
 * | `opened` | it listened, until it broke                              | 50, and all counts begin again                         |
 * | `away`   | it did not listen, and the store does not answer either  | 50 more each time, up to 500                           |
 * | `vain`   | it did not listen, though the store answers              | the same; after five of them in a row as for `refused` |
 * | `refused`| the store says that it may not                           | 1000, twice as long each time, up to a minute          |
 */
type Outcome = 'opened' | 'away' | 'vain' | 'refused';

/** How many failed in a row, how many of them with the outcome `vain`, and for how many waiters poll. */
type Tries = Readonly<Record<'failures' | 'vain' | 'refusals' | 'pause', number>>;

const MOST_VAIN = 5;
const NO_TRIES: Tries = { failures: 0, vain: 0, refusals: 0, pause: 0 };

export function afterTry({ failures, vain }: Tries, outcome: Outcome): Tries {
  if (outcome === 'opened') return { failures: 1, vain: 0, refusals: 0, pause: 50 };
  const pause = Math.min(50 * ++failures, 500);
  if (outcome === 'away') return { failures, vain, refusals: 0, pause };
  vain = Math.max(vain + 1, outcome === 'refused' ? MOST_VAIN + 1 : 0);
  const refusals = Math.max(0, vain - MOST_VAIN);
  return { failures, vain, refusals, pause: refusals === 0 ? pause : Math.min(1000 * 2 ** (refusals - 1), 60_000) };
}

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
    const giveUp = (why: string): void => warn(`${this.storeName} waiters cannot be woken and poll instead: ${why}.`);
    const fault = (error: unknown): void => {
      this.isTried = true;
      giveUp(messageOf(error));
    };
    return (this.opening ??= new Promise((resolve) => detached(() => void this.keepOpen(giveUp, resolve).catch(fault).finally(resolve))));
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
    const close = (isHeard: boolean): void => (isHeard ? undefined : connection.close());
    this.isHeard().then(close, () => undefined);
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
    for (let tries = NO_TRIES; ;) {
      const connection = (this.connection = this.connect());
      const isCurrent = (): boolean => this.connection === connection;
      const problem = await this.problemOf(connection);
      if (!problem && isCurrent()) {
        this.isOpen = this.isTried = true;
        tried();
        // Messages that were sent meanwhile are lost.
        this.wakeAll();
        await connection.ended;
      }
      connection.close();
      if (!isCurrent()) return;
      this.isTried = true;
      this.isOpen = false;
      tried();
      tries = afterTry(tries, !problem ? 'opened' : !problem.transient ? 'refused' : (await this.answers()) ? 'vain' : 'away');
      if (!isCurrent()) return;
      if (problem && tries.refusals === 1) warn(problem.transient ? messageOf(problem) : `${messageOf(problem)}: ${this.advice}`);
      if (tries.refusals > 0) this.refused();
      await idle(tries.pause);
      if (!isCurrent()) return;
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
