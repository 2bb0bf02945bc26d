import { asStoreError, StoreError, type LockError } from '../../core/model/errors.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { now } from '../../core/util/clock.js';
import { NextAnswer } from './quorum.next-answer.js';

/** One of the stores of a quorum. */
export class Member {
  /** For messages. */
  readonly title: string;
  /** Whether it has answered its last request. */
  isUp = true;
  /** The last request of each owner that has no answer yet. */
  private readonly last = new Map<string, Promise<unknown>>();
  private readonly nextAnswer = new NextAnswer();
  private hasWarned = false;

  /** @param quarantine milliseconds; 0: its server forgets nothing. */
  constructor(
    readonly store: LockStore,
    index: number,
    private readonly quarantine: number,
  ) {
    this.title = `member ${index + 1} (${store.name})`;
  }

  /** Sends it when the last request of this owner has its answer: drivers rely on that order, and nobody else waits for all answers. */
  inOrder<Reply>({ key, owner }: Tenancy, send: () => Promise<Reply>): Promise<Reply> {
    const before = this.last.get(owner);
    const reply = this.heard(before ? before.then(send, send) : sent(send), key);
    this.last.set(owner, reply);
    const ended = (): void => {
      if (this.last.get(owner) === reply) this.last.delete(owner);
    };
    reply.then(ended, ended);
    return reply;
  }

  /**
   * Sends what gives back all that the owner may have here. Without an answer it is repeated in the background, before any later request of the owner.
   *
   * @param end on the monotonic clock: all of that has expired.
   */
  giveBack<Reply>(tenancy: Tenancy, end: number, send: () => Promise<Reply>): Promise<Reply> {
    const reply = this.inOrder(tenancy, send);
    reply.catch((error: LockError) => {
      // If there is a later request of the same owner, that one takes care of it.
      if (!isTransient(error) || this.isAsked(tenancy.owner)) return;
      this.inOrder(tenancy, () => this.repeated(send, end, error)).catch(() => undefined);
    });
    return reply;
  }

  /** Whether a request of this owner has no answer yet. */
  isAsked(owner: string): boolean {
    return this.last.has(owner);
  }

  /** Resolves when each request of this owner has its answer, also those that follow from it. */
  async answered(owner: string): Promise<void> {
    for (let last = this.last.get(owner); last; last = this.last.get(owner)) await last.catch(() => undefined);
  }

  /** Resolves when all requests so far have their answers. */
  async quiet(): Promise<void> {
    await Promise.allSettled(this.last.values());
  }

  /** Passes the reply on, and notes whether there was one. */
  heard<Reply>(reply: Promise<Reply>, key: string): Promise<Reply> {
    return reply.then(
      (answer) => {
        this.isUp = true;
        this.nextAnswer.all(true);
        return answer;
      },
      (cause: unknown) => {
        throw this.failed(asStoreError(cause, key));
      },
    );
  }

  async close(): Promise<void> {
    this.nextAnswer.all(false);
    await this.store.close();
  }

  /** Whether a vote may not count. */
  get mayForget(): boolean {
    return this.quarantine > 0 && this.store.remembers !== undefined;
  }

  /**
   * Why a vote does not count that was asked for at this time; `undefined`: it counts. A server that was started again may have forgotten what it had
   * granted. To be called when the vote has arrived, so that it is not the vote of an earlier server than the one that is asked.
   */
  async doubt(key: string, sentAt: number): Promise<LockError | undefined> {
    const { store, quarantine, title } = this;
    try {
      const age = (await store.remembers!()) - (now() - sentAt);
      if (age >= quarantine) return undefined;
      const known = `it may have forgotten what was before the last ${Math.max(0, Math.floor(age / 1000))} s`;
      return new StoreError(`${title} does not vote yet: ${known}, and the quarantine is ${quarantine / 1000} s.`, {
        key,
        transient: true,
      });
    } catch (cause) {
      return this.failed(asStoreError(cause, key));
    }
  }

  private async repeated<Reply>(send: () => Promise<Reply>, end: number, error: unknown): Promise<Reply> {
    while (isTransient(error) && (await this.nextAnswer.wait(end))) {
      try {
        return await send();
      } catch (cause) {
        error = cause;
      }
    }
    throw error;
  }

  private failed(error: LockError): LockError {
    if (!(error instanceof StoreError)) return error;
    this.isUp = false;
    if (error.transient || this.hasWarned) return error;
    // With the other members locks work on, so that nobody would learn of it.
    this.hasWarned = true;
    process.emitWarning(`The quorum has to do without ${this.title}: ${error.message}`, 'DistributedLockWarning');
    return error;
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof StoreError && error.transient;
}

/** An owner and a key as one word: keys have no line ends. */
export function idOf(key: string, owner: string): string {
  return `${owner}\n${key}`;
}

/** A driver should reject, not throw. */
export function sent<Reply>(send: () => Promise<Reply>): Promise<Reply> {
  try {
    return send();
  } catch (fault) {
    return Promise.reject(fault);
  }
}
