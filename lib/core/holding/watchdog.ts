import type { LeaseDriver } from '../store/lease-driver.js';
import { after, now } from '../util/clock.js';
import { LinkedList } from '../util/linked-list.js';
import type { Lifecycle } from './lifecycle.js';
import type { Tenure } from './tenure.js';

const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1000;
const LATEST = 50;

/**
 * Renews every tenure of the process when a third of its length is over, in one batch for each driver and tick, and ends those whose validity is
 * over. One timer serves all. It does not keep the process alive.
 *
 * A renewal without an answer is neither a success nor a loss. It is sent again until the validity ends.
 */
export class Watchdog {
  private readonly tenures = new LinkedList<Tenure>();
  private timer: NodeJS.Timeout | undefined;
  private tickAt = Infinity;
  private firesAt = Infinity;

  add(tenure: Tenure): void {
    this.tenures.add(tenure);
    this.tickBy(Math.min(tenure.renewAt, tenure.validUntil));
  }

  /** The timer stays until its next tick: a new timer for each short hold would cost more than the rest of the hold. */
  remove(tenure: Tenure): void {
    this.tenures.delete(tenure);
  }

  tenuresOf(runtime: Lifecycle): Tenure[] {
    return [...this.tenures].filter((tenure) => tenure.runtime === runtime);
  }

  /** The next tick comes at this time at the latest. */
  tickBy(time: number): void {
    if (time >= this.tickAt) {
      // The timer is gone if a test has thrown its fake clock away.
      const isGone = this.tickAt < Infinity && now() - this.firesAt > LATEST;
      if (!isGone) return;
    }
    const current = now();
    clearTimeout(this.timer);
    // A tenure that was due before it was added does not show that the event loop lagged.
    if (time < this.tickAt) this.tickAt = Math.max(time, current);
    this.firesAt = Math.max(this.tickAt, current);
    this.timer = after(this.firesAt - current, () => this.tick()).unref();
  }

  private tick(): void {
    const time = now();
    const lag = time - this.tickAt;
    this.tickAt = Infinity;
    const due = new Map<LeaseDriver, Tenure[]>();
    let firstRenewal = Infinity;
    let firstEnd = Infinity;
    let shortest: Tenure | undefined;
    let pace = 0;
    const over: Tenure[] = [];
    // Nothing leaves the list meanwhile: a copy of thousands of entries for each tick would cost a tenth of all renewals.
    for (let tenure = this.tenures.first; tenure; tenure = tenure.next) {
      if (!shortest || tenure.ttl < shortest.ttl) shortest = tenure;
      pace = Math.min(pace || tenure.pace, tenure.pace);
      if (time >= tenure.validUntil) {
        over.push(tenure);
        continue;
      }
      if (time >= tenure.renewAt) {
        const batch = due.get(tenure.driver);
        if (batch) batch.push(tenure);
        else due.set(tenure.driver, [tenure]);
        // A reply can be lost on a connection that stays open. So the next renewal does not wait for it.
        tenure.renewAt = time + Math.max(tenure.pace, SHORTEST_PAUSE);
      }
      firstRenewal = Math.min(firstRenewal, tenure.renewAt);
      firstEnd = Math.min(firstEnd, tenure.validUntil);
    }
    for (const tenure of over) tenure.expire();
    if (shortest && lag > shortest.ttl / 3) noticeLag(lag, shortest);
    for (const [driver, tenures] of due) this.renew(driver, tenures);
    // A tick gathers the renewals of a seventh of the shortest pace. Else thousands of leases would need as many ticks.
    this.tickBy(Math.min(firstEnd, Math.max(firstRenewal, time + pace / 7)));
  }

  private renew(driver: LeaseDriver, tenures: readonly Tenure[]): void {
    let replies: readonly (Promise<'renewed' | 'lost'> | undefined)[] = [];
    const sentAt = now();
    try {
      replies = driver.renew(tenures);
    } catch (fault) {
      replies = tenures.map(() => Promise.reject(fault));
    }
    tenures.forEach((tenure, index) => {
      tenure.asks(sentAt);
      const reply = replies[index] ?? Promise.resolve('lost' as const);
      reply.then(
        (answer) => tenure.answered(answer, sentAt),
        (cause: unknown) => this.retry(tenure, cause),
      );
    });
  }

  private retry(tenure: Tenure, cause: unknown): void {
    const error = tenure.unanswered(cause);
    if (!this.tenures.has(tenure)) return;
    const pause = Math.min(Math.max(tenure.ttl / 10, SHORTEST_PAUSE), LONGEST_PAUSE);
    if (tenure.renewAt < Infinity) tenure.renewAt = Math.min(tenure.renewAt, now() + pause);
    tenure.runtime.unknown('renew', tenure, error);
    this.tickBy(tenure.renewAt);
  }
}

function noticeLag(lag: number, { key, ttl, runtime }: Tenure): void {
  const tooLong = `The event loop stood still for ${Math.round(lag)} ms, more than a third of the keyTimeout of ${ttl} ms of "${key}"`;
  runtime.events.warn(`${tooLong}: leases may be lost. Use a longer keyTimeout, or move the work that blocks off this thread.`);
  runtime.events.emit('lag', { lag, keyTimeout: ttl, key });
}

/** The watchdog of this process. */
export const watchdog = new Watchdog();
