import { after, now, validity } from '../util/clock.js';
import type { Contest, Taken, Wish } from './contest.js';
import type { AcquireReply, AcquireRequest, LeaseDriver } from '../store/lease-driver.js';
import { asStoreError, LockConfigError, StoreError, type LockError } from '../model/errors.js';
import { createOwner } from '../model/owner.js';
import { pollDelay, queuedDelay, turnDelay } from './backoff.js';

/** A third of a second or so, in which an inbox can be opened. */
const VAIN_ATTEMPTS = 5;
const LOST_BEFORE = 'the request that passed it on found that it belonged to somebody else or to nobody';

/**
 * Asks the store for a key under one owner, again and again, until it is granted or called off. The only acquire loop: every kind of lock
 * goes through it.
 *
 * It is woken when the key is offered to it, and asks by itself too: messages get lost, holders die, and not everybody who releases tells.
 */
export class Contender {
  readonly owner = createOwner();
  attempts = 0;
  private sentAt = 0;
  private sentTtl = 0;
  private isAsking = false;
  private isWoken = false;
  private isOver = false;
  /** Whether the store may know this owner, as a holder or a waiter. */
  private mayBeKnown = false;
  private isQueued = false;
  /** Whether the queue knows where to wake us. */
  private hasInbox = false;
  private timer: NodeJS.Timeout | undefined;
  /** When the timer ends; and when an offer to another waiter ends, of which we were told since we last asked. */
  private asksAt = Infinity;
  private offerEndsAt = Infinity;
  private forgetWakeUps: (() => void) | undefined;
  /** Called off while a request was under way. */
  private settled: (() => void) | undefined;

  /** @param yields the tenure that our first request gives up, if any. */
  constructor(
    private readonly contest: Contest,
    private yields?: { readonly owner: string; readonly ttl: number; lose(why: string): void },
  ) {}

  get isWaiting(): boolean {
    return !this.isAsking;
  }

  /** Milliseconds since the request that has no answer yet was sent. */
  get silence(): number {
    return this.isAsking ? now() - this.sentAt : 0;
  }

  /** Asks now, or once more when the request under way is answered. */
  ask(): void {
    if (this.isOver) return;
    if (this.isAsking) {
      this.isWoken = true;
      return;
    }
    clearTimeout(this.timer);
    const { driver, key } = this.contest;
    const wish = this.contest.wish();
    const request = this.requestFor(key, wish, driver);
    const wasKnown = this.mayBeKnown;
    this.attempts++;
    this.isAsking = true;
    this.isWoken = false;
    this.offerEndsAt = Infinity;
    this.mayBeKnown = true;
    this.sentTtl = request.ttl;
    this.sentAt = now();
    this.send(driver, request).then(
      (reply) => this.answered(reply, wish, request.queue),
      (cause: unknown) => this.unanswered(asStoreError(cause, key), wasKnown),
    );
  }

  /** Nobody wants the key any more. What the store may know of us is given up once the request under way has settled. */
  cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    if (!this.isAsking) this.giveUpAll();
    else this.contest.runtime.inBackground(new Promise<void>((resolve) => (this.settled = resolve)));
  }

  private giveUpAll(): void {
    const { owner, yields, forgetWakeUps = noop } = this;
    const { runtime, driver, key } = this.contest;
    // What the store's client knows of our place in the queue is needed until it has left.
    const end = this.sentAt + (this.isQueued ? Math.max(this.sentTtl, driver.placeLifetime) : this.sentTtl);
    if (this.mayBeKnown) void runtime.giveUp('leave', { key, owner }, end, () => driver.leave({ key, owner })).finally(forgetWakeUps);
    else forgetWakeUps();
    if (yields) {
      const tenancy = { key, owner: yields.owner };
      void runtime.giveUp('release', tenancy, this.sentAt + yields.ttl, () => driver.release({ ...tenancy, keepFor: 0 }));
    }
    this.settled?.();
  }

  private send(driver: LeaseDriver, request: AcquireRequest): Promise<AcquireReply> {
    try {
      return driver.acquire(request);
    } catch (fault) {
      return Promise.reject(fault);
    }
  }

  private requestFor(key: string, wish: Wish, { wakeUps }: LeaseDriver): AcquireRequest {
    // A free key is taken in one step; only for one that is taken do we begin to listen, and to queue. A fair place counts from the first
    // request, also where nothing can wake it yet.
    const isContended = this.attempts > 0 || this.yields !== undefined;
    const mayQueue = wish.fair || (isContended && (!wakeUps || wakeUps.isOpen || this.attempts >= VAIN_ATTEMPTS));
    const queue = wish.isPatient && (this.isQueued || mayQueue);
    if (queue && !this.isQueued) {
      this.isQueued = true;
      this.forgetWakeUps = wakeUps?.listen(this.owner, (askIn) => this.woken(askIn));
    }
    this.hasInbox ||= queue && wakeUps?.isOpen === true;
    return {
      key,
      owner: this.owner,
      ttl: Math.max(wish.ttl, wish.minHold),
      tokens: wish.tokens,
      queue,
      holding: wish.holding,
      share: wish.share,
      yields: this.yields?.owner,
    };
  }

  private answered(reply: AcquireReply, wish: Wish, isQueued: boolean): void {
    // Of a repeated one, an earlier try may have been applied.
    if (reply.yielded === 'lost' && this.attempts === 1) this.yields?.lose(LOST_BEFORE);
    this.isAsking = false;
    this.yields = undefined;
    if (!reply.granted) this.mayBeKnown = isQueued;
    if (this.isOver) return this.giveUpAll();
    if (!reply.granted) return this.retry(reply);
    if (now() >= this.sentAt + validity(wish.ttl)) {
      // Asked for again under the same owner, it is refreshed.
      const { key } = this.contest;
      return this.retry(new StoreError(`The store granted "${key}" only after the ${wish.ttl} ms of its lease.`, { key, transient: true }));
    }
    // Another one may be the first meanwhile, who wants it for longer.
    if (!this.contest.isWanted(wish)) return this.ask();
    this.isOver = true;
    this.forgetWakeUps?.();
    this.contest.granted({ owner: this.owner, wish, token: reply.token, sentAt: this.sentAt, isContested: this.attempts > 1 });
  }

  /** A message never grants the key: we ask, now or when the offer to another waiter has ended. */
  private woken(askIn: number | undefined): void {
    if (askIn === undefined) return this.ask();
    const end = now() + askIn + 1;
    // Of a mutex only the last offer counts: the one before has been taken, or has ended. Of a shared key several may stand.
    const isFirst = !this.contest.driver.isShared || this.offerEndsAt <= now();
    this.offerEndsAt = isFirst ? end : Math.min(this.offerEndsAt, end);
    if (!this.isOver && !this.isAsking) this.askLater();
  }

  private unanswered(error: LockError, wasKnown: boolean): void {
    this.isAsking = false;
    if (error instanceof LockConfigError || (error instanceof StoreError && error.isUnsent)) this.mayBeKnown = wasKnown;
    if (this.isOver) return this.giveUpAll();
    if (error.transient) return this.retry(error);
    this.cancel();
    this.contest.failed(error);
  }

  private retry(outcome: Taken | LockError): void {
    const { contest } = this;
    contest.refused(outcome);
    if (this.isOver) return;
    const { wakeUps } = contest.driver;
    // What was not free at once is worth a place in the queue.
    const mayQueueNow = 'granted' in outcome && !this.isQueued && wakeUps?.isOpen;
    if (this.isWoken || mayQueueNow) return this.ask();
    this.asksAt = now() + this.delayAfter(outcome, contest.wish());
    this.askLater();
    if (!wakeUps || wakeUps.isOpen || !('granted' in outcome)) return;
    void wakeUps
      .open((message) => contest.runtime.events.warn(message))
      .then(() => {
        if (wakeUps.isOpen && !this.isQueued && !this.isAsking) this.ask();
      });
  }

  private askLater(): void {
    clearTimeout(this.timer);
    this.timer = after(Math.min(this.asksAt, this.offerEndsAt) - now(), () => {
      if (this.hasInbox) this.contest.driver.wakeUps?.check?.();
      this.ask();
    });
  }

  private delayAfter(outcome: Taken | LockError, { retryInterval, ttl }: Wish): number {
    if (!('granted' in outcome)) return pollDelay(this.attempts, retryInterval, -1);
    if (!this.isQueued) return pollDelay(this.attempts, retryInterval, outcome.remaining);
    if (this.hasInbox && this.contest.driver.wakeUps?.isOpen)
      return queuedDelay(retryInterval, outcome.remaining, this.contest.driver.placeLifetime);
    return turnDelay(outcome.ahead, this.attempts, ttl);
  }
}

function noop(): void {
  // It never listened.
}
