import { asStoreError, type LockError, messageOf, StoreError } from '../../core/model/errors.js';
import type { WarningCode } from '../../core/model/lock-log.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { StoreWatch } from '../../core/store/store-watch.js';
import { after, now } from '../../core/util/clock.js';
import { promised } from '../../core/util/promised.js';

/** Milliseconds after which a request is sent again, though the member has answered no other. */
const PAUSE = 1_000;
/** Most requests that are to be sent again, so that an outage does not fill the memory: what earlier ones would end, ends with its lease. */
const MOST = 1_000;

/** A request that is to be sent again. */
interface Pause {
  /** The member has refused it: what it answers to others means nothing. */
  readonly isRefused: boolean;
  /** False: it is not sent again. */
  end(isSentAgain: boolean): void;
}

/** One of the stores of a quorum. */
export class Member {
  /** Whether it has answered its last request. */
  isUp = true;
  /** The last request of each owner that has no answer yet. */
  private readonly last = new Map<string, Promise<unknown>>();
  /** The pauses by owner, the longest one first. */
  private readonly pauses = new Map<string, Pause>();
  private isClosed = false;
  /** Whether a passing and a final refusal were logged. */
  private readonly warned = new Set<boolean>();
  private readonly hearing: readonly ((() => void) | undefined)[];
  private readonly watch: StoreWatch;

  /** @param title for messages. @param quarantine milliseconds; 0: its server forgets nothing. */
  constructor(
    readonly store: LockStore,
    readonly title: string,
    private readonly quarantine: number,
    private readonly warn: (message: string, code?: WarningCode) => void,
  ) {
    const said = (_code: WarningCode, line: string | (() => string)): void =>
      warn(typeof line === 'string' ? line : line(), 'NDL_QUORUM_MEMBER');
    this.watch = new StoreWatch(store, '', { warn: said, write: () => undefined }, title, 'the quorum does without it');
    this.hearing = [
      store.onWarning?.((message, code) => warn(`${title}: ${message}`, code)),
      store.onTrouble?.(() => this.watch.trouble()),
    ];
  }

  /** Sends a request, and notes whether it is answered. A request that throws rejects. @param ended is called before the caller is answered. */
  send<Reply>(key: string, request: () => Promise<Reply>, ended?: (isAnswered: boolean) => void): Promise<Reply> {
    return promised(request).then(
      (answer) => {
        ended?.(true);
        this.isUp = true;
        for (const pause of this.pauses.values()) if (!pause.isRefused) pause.end(true);
        return answer;
      },
      (cause: unknown) => {
        ended?.(false);
        throw this.failed(asStoreError(cause, key));
      },
    );
  }

  /** Sends it when the last request of this owner has its answer: drivers rely on that order, and nobody else waits for all answers. */
  sendInOrder<Reply>({ key, owner }: Tenancy, request: () => Promise<Reply>, failed?: () => void): Promise<Reply> {
    // This request takes care of what an earlier one would try again.
    this.pauses.get(owner)?.end(false);
    const before = this.last.get(owner);
    const ended = (isAnswered: boolean): void => {
      if (this.last.get(owner) === reply) this.last.delete(owner);
      if (!isAnswered) failed?.();
    };
    const reply = this.send(key, before ? () => before.then(request, request) : request, ended);
    this.last.set(owner, reply);
    return reply;
  }

  /**
   * Sends a request that ends all that the owner may have here. Until the member has done it, it is sent again in the background, whatever the error.
   *
   * @param end on the monotonic clock: all of that has expired.
   * @param mayKnow whether the member may have a request of the owner.
   */
  sendEnd<Reply>(tenancy: Tenancy, end: number, request: () => Promise<Reply>, mayKnow = (): boolean => true): Promise<Reply> {
    return this.sendInOrder(tenancy, request, () => {
      // If there is a later request of the same owner, that one takes care of it.
      if (mayKnow() && !this.isAsked(tenancy.owner)) this.sendAgain(tenancy, end, request, true).catch(() => undefined);
    });
  }

  /**
   * Repeats a request that had no answer when the member answers others, and each second, until it has an answer or the owner has a later request.
   *
   * @param isEnd whether it is repeated after an error that is final, too.
   */
  sendAgain<Reply>(tenancy: Tenancy, end: number, request: () => Promise<Reply>, isEnd = false): Promise<Reply> {
    return this.sendInOrder(tenancy, async () => {
      let isRefused = false;
      while (await this.mayBeSent(tenancy.owner, end, isRefused)) {
        try {
          return await request();
        } catch (error) {
          isRefused = !isTransient(error);
          if (isRefused && !isEnd) throw error;
        }
      }
      throw new StoreError(`${this.title} has not answered for long.`, { key: tenancy.key, transient: true });
    });
  }

  /** Whether a request of this owner has no answer yet. */
  isAsked(owner: string): boolean {
    return this.last.has(owner);
  }

  /** Resolves when each request of this owner has its answer, also those that follow from it. */
  async answered(owner: string): Promise<void> {
    for (let last = this.last.get(owner); last; last = this.last.get(owner)) await last.catch(() => undefined);
  }

  /** Sends nothing again. Resolves when all requests so far have their answers. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const pause of this.pauses.values()) pause.end(false);
    // What its store refuses from now on, it refuses because it is closed.
    this.warned.add(true).add(false);
    for (const stop of this.hearing) stop?.();
    this.watch.stop();
    await Promise.allSettled(this.last.values());
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
      const message = `${title} does not vote yet: ${known}, and the quarantine is ${quarantine / 1000} s.`;
      return new StoreError(message, { key, transient: true, isRefusal: true });
    } catch (cause) {
      return this.failed(asStoreError(cause, key));
    }
  }

  /** Resolves when the request of this owner is to be sent again; false: not any more. */
  private mayBeSent(owner: string, until: number, isRefused: boolean): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.isClosed || until <= now()) return resolve(false);
      const end = (isSentAgain: boolean): void => {
        clearTimeout(timer);
        this.pauses.delete(owner);
        resolve(isSentAgain && now() < until);
      };
      const timer = after(PAUSE, () => end(true)).unref();
      this.pauses.set(owner, { isRefused, end });
      if (this.pauses.size > MOST) [...this.pauses.values()][0]?.end(false);
    });
  }

  private failed(error: LockError): LockError {
    if (!(error instanceof StoreError)) return error;
    this.isUp = false;
    if (error.transient && !error.isRefusal) this.watch.suspect();
    else if (!this.warned.has(error.transient))
      this.warn(`The quorum has to do without ${this.title}: ${messageOf(error)}`, 'NDL_QUORUM_MEMBER');
    if (!error.transient || error.isRefusal) this.warned.add(error.transient);
    return error;
  }
}

function isTransient(error: unknown): boolean {
  return error instanceof StoreError && error.transient;
}
