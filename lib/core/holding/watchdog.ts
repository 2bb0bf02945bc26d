import { after, now } from '../util/clock.js';
import type { LeaseDriver } from '../store/lease-driver.js';
import { asStoreError, type LockError } from '../model/errors.js';
import { LinkedList, type Linked } from '../util/linked-list.js';

const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1000;
const LATEST = 50;

/** What the watchdog knows of a tenure. Times are on the monotonic clock, milliseconds. */
export interface Renewable extends Linked<Renewable> {
  readonly key: string;
  readonly owner: string;
  readonly driver: LeaseDriver;
  readonly ttl: number;
  readonly validUntil: number;
  /** When to renew it next; `Infinity`: never again. */
  renewAt: number;
  /** Who has the lease now: it may have been passed on. */
  readonly succession: { readonly current: Renewable };
  settleRenewal(reply: 'renewed' | 'lost', sentAt: number): void;
  expire(): void;
  noticeLag(lag: number): void;
  noticeUnknown(operation: 'renew', error: LockError): void;
}

/**
 * Renews every tenure of the process when a third of its length has gone, a batch for each driver and tick, and ends those whose validity
 * is over. One timer serves all; it does not keep the process alive.
 *
 * A renewal without an answer is neither a success nor a loss: it is tried again until the validity ends.
 */
export class Watchdog {
  private readonly tenures = new LinkedList<Renewable>();
  private timer: NodeJS.Timeout | undefined;
  private tickAt = Infinity;
  private firesAt = Infinity;

  /** @param predecessor whose lease it takes over: it is due when that was. */
  add(tenure: Renewable, predecessor?: Renewable): void {
    this.tenures.add(tenure);
    if (predecessor) this.tenures.delete(predecessor);
    else this.tickBy(Math.min(tenure.renewAt, tenure.validUntil));
  }

  /** The timer stays, and ends with its next tick: setting one anew for each short hold would cost more than all the rest. */
  remove(tenure: Renewable): void {
    this.tenures.delete(tenure);
  }

  private tickBy(time: number): void {
    const current = now();
    // A test that throws its fake clock away takes the timer with it.
    const isGone = this.tickAt < Infinity && current - this.firesAt > LATEST;
    if (time >= this.tickAt && !isGone) return;
    clearTimeout(this.timer);
    // What was due before we knew of it says nothing about the event loop.
    if (time < this.tickAt) this.tickAt = Math.max(time, current);
    this.firesAt = Math.max(this.tickAt, current);
    this.timer = after(this.firesAt - current, () => this.tick()).unref();
  }

  private tick(): void {
    const time = now();
    const lag = time - this.tickAt;
    this.tickAt = Infinity;
    const due = new Map<LeaseDriver, Renewable[]>();
    let firstRenewal = Infinity;
    let firstEnd = Infinity;
    let shortest: Renewable | undefined;
    for (const tenure of this.tenures) {
      if (!shortest || tenure.ttl < shortest.ttl) shortest = tenure;
      if (time >= tenure.validUntil) {
        tenure.expire();
        continue;
      }
      if (time >= tenure.renewAt) {
        const batch = due.get(tenure.driver);
        if (batch) batch.push(tenure);
        else due.set(tenure.driver, [tenure]);
        // A reply can be lost on a connection that stays open: ask again without waiting for it.
        tenure.renewAt = time + Math.max(tenure.ttl / 3, SHORTEST_PAUSE);
      }
      firstRenewal = Math.min(firstRenewal, tenure.renewAt);
      firstEnd = Math.min(firstEnd, tenure.validUntil);
    }
    if (shortest && lag > shortest.ttl / 3) shortest.noticeLag(lag);
    for (const [driver, tenures] of due) this.renew(driver, tenures, time);
    // Thousands of leases fall due at as many instants: gather a twentieth of the shortest one into a tick.
    const pause = shortest ? shortest.ttl / 20 : 0;
    this.tickBy(Math.min(firstEnd, Math.max(firstRenewal, time + pause)));
  }

  private renew(driver: LeaseDriver, batch: readonly Renewable[], sentAt: number): void {
    let replies: readonly Promise<'renewed' | 'lost'>[];
    try {
      replies = driver.renew(batch.map(({ key, owner, ttl }) => ({ key, owner, ttl })));
    } catch (fault) {
      for (const tenure of batch) this.retry(tenure, fault);
      return;
    }
    batch.forEach((tenure, index) => {
      (replies[index] ?? Promise.resolve('lost' as const)).then(
        (reply) => tenure.settleRenewal(reply, sentAt),
        (cause: unknown) => this.retry(tenure, cause),
      );
    });
  }

  /** The lease may have passed to the next caller meanwhile. */
  private retry({ succession }: Renewable, cause: unknown): void {
    const tenure = succession.current;
    if (!this.tenures.has(tenure)) return;
    const pause = Math.min(Math.max(tenure.ttl / 10, SHORTEST_PAUSE), LONGEST_PAUSE);
    if (tenure.renewAt < Infinity) tenure.renewAt = Math.min(tenure.renewAt, now() + pause);
    tenure.noticeUnknown('renew', asStoreError(cause, tenure.key));
    this.tickBy(tenure.renewAt);
  }
}

/** The watchdog of this process. */
export const watchdog = new Watchdog();
