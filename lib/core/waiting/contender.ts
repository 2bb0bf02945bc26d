import type { Tenure } from '../holding/tenure.js';
import { LockLostError, StoreError, type LockError } from '../model/errors.js';
import { holdingOf } from '../model/owner.js';
import type { ResolvedOptions } from '../model/options.js';
import type { Ticket } from '../model/ticket.js';
import type { AcquireReply } from '../store/lease-driver.js';
import { now, validity } from '../util/clock.js';
import { repeat } from '../util/repeated-request.js';
import { pollDelay, queuedDelay, turnDelay } from './backoff.js';
import type { LockQueue } from './lock-queue.js';

export type Taken = Extract<AcquireReply, { granted: false }>;

/** These attempts take about a third of a second, in which an inbox can be opened. */
const VAIN_ATTEMPTS = 5;
const LOST_BEFORE = 'the request that passed it on found that it belonged to somebody else or to nobody';

/**
 * The entry of a contender at the store, as far as is known: after a request that queues while the inbox is open or not, one that does not queue, and a
 * refusal. After a request that was not sent, it is as before.
 *
 * | it has                                      | queues, open | queues   | does not  | refused  |
 * |---------------------------------------------|--------------|----------|-----------|----------|
 * | `none`                                      | `woken`      | `silent` | `perhaps` | `none`   |
 * | `perhaps` the grant, or an entry            | `woken`      | `silent` | `perhaps` | `none`   |
 * | a `silent` queue entry, for which it asks   | `woken`      | `silent` | `silent`  | `silent` |
 * | a queue entry that is `woken` by the inbox  | `woken`      | `woken`  | `woken`   | `woken`  |
 */
type QueueEntry = 'none' | 'perhaps' | 'silent' | 'woken';

/** The entry after a request was sent. */
export function entryAfter(entry: QueueEntry, queues: boolean, isInboxOpen: boolean): QueueEntry {
  if (!queues) return entry === 'none' ? 'perhaps' : entry;
  return entry === 'woken' || isInboxOpen ? 'woken' : 'silent';
}

/**
 * Asks the store for a key under one owner until it is granted or no caller wants it any more. All kinds of lock are acquired by it.
 *
 * It asks when the store offers it the key, and also from time to time: messages can be lost, holders can die, and a plain DEL sends no message.
 */
export class Contender {
  readonly requests = repeat<AcquireReply>(this);
  readonly owner: string;
  private entry: QueueEntry = 'none';
  /** The last request: the options of its caller, how many tokens it reserves, and what the store had before. */
  request!: Readonly<{ options: ResolvedOptions; ttl: number; reserved: number; entryBefore: QueueEntry }>;
  /** Why the key was not granted when it asked last, when that was known, and since when the holder is known that the store has named last. */
  refusal: Readonly<{ outcome: Taken | LockError; at: number; holder: string | null | undefined; since: number }> | undefined;
  /** When to ask next, and when the offer to another waiter ends, if one was reported since the last request. */
  private asksAt = Infinity;
  private offerEndsAt = Infinity;
  private stopListening: (() => void) | undefined;
  /** A tenure that the next request gives up, and which request that is. */
  private yields: Readonly<{ tenure: Tenure; attempt: number }> | undefined;
  /** The owner of the ticket that it adopts, and until when that has the key, by the clock of the store. */
  private ticket: Readonly<{ from: string; until: number }> | undefined;

  constructor(private readonly queue: LockQueue) {
    this.owner = queue.runtime.createOwner(queue.first.settings.trace?.suffix);
  }

  get attempts(): number {
    return this.requests.attempts;
  }

  get sentAt(): number {
    return this.requests.sentAt;
  }

  /** Whether its next request can give up a tenure. A request that was to give up another one may have failed, and is repeated. */
  get mayYield(): boolean {
    return !this.requests.isAsking && !this.yields;
  }

  /** @param yields a tenure that this request gives up. */
  askFor(yields: Tenure | undefined): void {
    this.yields = yields && { tenure: yields, attempt: this.attempts + 1 };
    this.requests.ask();
  }

  /** No caller wants the key any more. The queue entry, or the grant, is given up when the request in flight has settled. */
  cancel(): void {
    this.requests.stop();
    if (this.ticket) this.queue.queues.calledOff.add(this.ticket.from);
    if (this.requests.isAsking) this.queue.runtime.inBackground(this.requests.settled.then(() => this.giveUp()));
    else void this.giveUp();
  }

  send(): Promise<AcquireReply> {
    const { driver, key, first, isInUse, waiting, limits, share } = this.queue;
    const { wakeUps } = driver;
    const { options, patience, adopts } = first.settings;
    // A free key needs no queue and no inbox. A fair caller queues with its first request.
    const mayQueue = options.fair || ((this.attempts > 1 || isInUse) && (!wakeUps || wakeUps.isOpen || this.attempts > VAIN_ATTEMPTS));
    const queue = patience > 0 && !adopts && (this.isQueued || mayQueue);
    const ttl = Math.max(options.keyTimeout, options.minHold);
    const tokens = waiting.size > 1 || isInUse ? limits.handOvers : 1;
    this.request = { options, ttl, reserved: tokens, entryBefore: this.entry };
    if (queue) this.stopListening ??= wakeUps?.listen(this.owner, (askIn) => this.woken(askIn));
    this.entry = entryAfter(this.entry, queue, wakeUps?.isOpen === true);
    this.offerEndsAt = Infinity;
    if (adopts) return this.adopt(adopts, ttl, tokens);
    const holding = queue ? first.holding.map(holdingOf) : undefined;
    return driver.acquire({ key, owner: this.owner, ttl, tokens, queue, holding, share, yields: this.yields?.tenure.owner });
  }

  private async adopt({ from }: Ticket, ttl: number, tokens: number): Promise<AcquireReply> {
    const { key, driver, queues } = this.queue;
    if (!this.ticket) {
      const { state, remaining } = await driver.check({ key, owner: from });
      if (state === 'held') this.ticket = { from, until: this.sentAt + remaining };
    }
    const reply = this.requests.isStopped || !this.ticket ? 'lost' : await driver.adopt!({ key, from, ttl, tokens, owner: this.owner });
    if (reply !== 'lost') return { granted: true, token: reply.token };
    this.entry = 'none';
    if (queues.calledOff.has(from)) throw new StoreError(`An earlier adoption of "${key}" is being undone.`, { key, transient: true });
    throw new LockLostError(`The lease of "${key}" cannot be adopted: it was adopted or released, or has ended.`, { key });
  }

  answered(reply: AcquireReply): void {
    const { runtime } = this.queue;
    // If this is a retry, an earlier try may have been applied.
    if (reply.yielded === 'lost' && this.attempts === this.yields?.attempt) this.yields.tenure.lose(LOST_BEFORE, 'taken');
    this.yields = undefined;
    if (!reply.granted && !this.isQueued) this.entry = 'none';
    if (!reply.granted && reply.yielded === 'released') this.handedOver(reply.holder);
    if (reply.granted && runtime.storeWatch.refusal) runtime.storeWatch.granted();
    if (this.requests.isStopped) return;
    if (!reply.granted) return this.retry(reply);
    const { queue, sentAt } = this;
    const { keyTimeout, minHold } = this.request.options;
    const time = now();
    if (time >= sentAt + validity(keyTimeout)) {
      // The next request refreshes the lease, because it has the same owner.
      const late = `The store granted "${queue.key}" only after the ${keyTimeout} ms of its lease.`;
      return this.retry(new StoreError(late, { key: queue.key, transient: true }));
    }
    // The first waiter may be another one now, with other times.
    const { options } = queue.first.settings;
    if (options.keyTimeout !== keyTimeout || options.minHold !== minHold) return this.requests.ask();
    this.requests.stop();
    this.stopListening?.();
    queue.granted(this, reply.token, time);
  }

  unanswered(cause: unknown): void {
    const { key, runtime } = this.queue;
    const error = runtime.errorOf(cause, key, this.sentAt);
    runtime.events.debug(() => `Could not acquire "${key}": ${error.message}`, { key, owner: this.owner, once: 'could not acquire' });
    if (error instanceof StoreError && error.isUnsent) this.entry = this.request.entryBefore;
    if (this.requests.isStopped) return;
    if (error.transient) return this.retry(error);
    this.cancel();
    this.queue.failed(this, error);
  }

  /** Once a minute: under contention it happens after each turn of this process. */
  private handedOver(holder: string | null): void {
    const { key, waiting, first, runtime } = this.queue;
    const { label } = first?.settings.options ?? {};
    const line = (): string => `Handed "${key}" over to ${holder ?? 'another process'}; ${waiting.size} wait here`;
    runtime.events.debug(line, { key, label, owner: holder ?? undefined, once: `handed over:${label ?? ''}` });
  }

  private get isQueued(): boolean {
    return this.entry === 'silent' || this.entry === 'woken';
  }

  /** A message does not grant the key: we ask, now or when the offer to another waiter has ended. */
  private woken(askIn: number | undefined): void {
    if (askIn === undefined) return this.requests.ask();
    const end = now() + askIn + 1;
    // A mutex is offered to one waiter at a time, so the last message counts. A shared key can be offered to several.
    this.offerEndsAt = this.queue.driver.isShared && this.offerEndsAt > now() ? Math.min(this.offerEndsAt, end) : end;
    this.askLater();
  }

  private retry(outcome: Taken | LockError): void {
    const { queue } = this;
    const { wakeUps } = queue.driver;
    const at = now();
    const isTaken = 'granted' in outcome;
    const { holder: before, since = at } = this.refusal ?? {};
    const holder = isTaken ? outcome.holder : before;
    this.refusal = { outcome, at, holder, since: holder === before ? since : at };
    queue.refused(this);
    if (this.requests.isStopped) return;
    // Once the key was found taken, a queue entry is worth a request.
    if (isTaken && !this.isQueued && queue.first.settings.patience > 0 && (!wakeUps || wakeUps.isOpen)) return this.requests.ask();
    this.asksAt = now() + this.delayAfter(outcome);
    this.askLater();
    if (isTaken && wakeUps && !wakeUps.isOpen) void wakeUps.open(...queue.runtime.events.ofInbox);
  }

  private askLater(): void {
    this.requests.askIn(Math.min(this.asksAt, this.offerEndsAt) - now(), () => {
      if (this.entry === 'woken') this.queue.driver.wakeUps?.check?.();
    });
  }

  private delayAfter(outcome: Taken | LockError): number {
    const { driver, first } = this.queue;
    const { retryInterval, keyTimeout } = first.settings.options;
    if (!('granted' in outcome)) return pollDelay(this.attempts, retryInterval, -1);
    if (!this.isQueued) return pollDelay(this.attempts, retryInterval, outcome.remaining);
    if (this.entry === 'woken' && driver.wakeUps?.isOpen) return queuedDelay(retryInterval, outcome.remaining, driver.queueEntryLifetime);
    return turnDelay(outcome.ahead, this.attempts, keyTimeout, now() - this.refusal!.since);
  }

  private async giveUp(): Promise<void> {
    const { owner, yields, entry, sentAt, ticket } = this;
    const { runtime, driver, key, queues } = this.queue;
    const { ttl } = this.request;
    if (yields) {
      const tenancy = { key, owner: yields.tenure.owner };
      void runtime.giveUp('release', tenancy, sentAt + yields.tenure.ttl, () => driver.release({ ...tenancy, keepFor: 0 }));
    }
    if (entry !== 'none') {
      const end = sentAt + (this.isQueued ? Math.max(ttl, driver.queueEntryLifetime) : ttl);
      // A lease that was handed over goes back to its ticket.
      const undo = (ttl: number): Promise<unknown> =>
        ticket && ttl > 0 ? driver.adopt!({ key, owner: ticket.from, from: owner, ttl, tokens: 1 }) : driver.leave({ key, owner });
      await runtime.giveUp('leave', { key, owner }, end, () => undo(Math.ceil((ticket?.until ?? 0) - now())));
    }
    if (ticket) queues.calledOff.delete(ticket.from);
    // The client's inbox needs to know our owner until it has left.
    this.stopListening?.();
  }
}
