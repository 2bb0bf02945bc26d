import type { LeaseDriver } from '../store/lease-driver.js';
import { Alarm, countSuspend, duration, now, suspendedSince } from '../util/clock.js';
import { LinkedList } from '../util/linked-list.js';
import type { Lifecycle } from './lifecycle.js';
import type { Tenure } from './tenure.js';

const SHORTEST_PAUSE = 20;
const LONGEST_PAUSE = 1000;
/** Milliseconds. A pause for garbage can outlast a lease that is shorter. */
const SHORT_LEASE = 500;
/** How often to check, in milliseconds, whether the event loop was blocked under a lease. */
const lookAfter = (ttl: number): number => Math.max(ttl / 40, 5);

/**
 * Renews every tenure of the process after a third of its length, in one batch for each driver and tick, and ends tenures whose validity is over. One
 * timer serves all of them. It does not keep the process alive.
 *
 * A renewal without an answer is neither a success nor a loss. It is sent again until the validity ends.
 */
export class Watchdog {
  private readonly tenures = new LinkedList<Tenure>();
  /** Made by the first question for an owner since the last tick: kept all the time it costs a tenth of a pair (`npm run bench -- builds`). */
  private byOwner: Map<string, Tenure> | undefined;
  private readonly alarm = new Alarm(() => this.tick());
  /** When a tenure is to be renewed, or ends. */
  private dueAt = Infinity;
  private shortestTtl = Infinity;
  /** When the event loop was last known to run. */
  private seenAt = -Infinity;
  private lastStall = { length: 0, end: -Infinity };
  /** The lengths of short leases that the log has named. */
  private readonly named = new Set<number>();

  add(tenure: Tenure, time: number): void {
    if (tenure.ttl < SHORT_LEASE && !this.named.has(tenure.ttl)) this.nameShort(tenure);
    this.tenures.add(tenure);
    this.byOwner?.set(tenure.owner, tenure);
    this.shortestTtl = Math.min(this.shortestTtl, tenure.ttl);
    this.dueAt = Math.min(this.dueAt, tenure.renewAt, tenure.validUntil);
    this.alarm.setBy(this.nextLook(time, tenure.ttl));
  }

  private nameShort({ key, ttl, runtime }: Tenure): void {
    this.named.add(ttl);
    const line = `The keyTimeout of "${key}" is ${ttl} ms: a short pause of the process loses the lease. Times are milliseconds, not seconds.`;
    runtime.events.warn('NDL_SHORT_LEASE', line, { key });
  }

  /** The timer stays until its next tick: a new timer for each short hold would cost more than the rest of the hold (`npm run bench -- builds`). */
  remove(tenure: Tenure): void {
    this.tenures.delete(tenure);
    this.byOwner?.delete(tenure.owner);
  }

  tenureOf(key: string, owner: string): Tenure | undefined {
    this.byOwner ??= new Map([...this.tenures].map((tenure) => [tenure.owner, tenure]));
    const tenure = this.byOwner.get(owner);
    return tenure?.key === key ? tenure : undefined;
  }

  tenuresOf(runtime: Lifecycle): Tenure[] {
    return [...this.tenures].filter((tenure) => tenure.runtime === runtime);
  }

  /** When the event loop was last blocked for a third of a lease, on the monotonic clock; negative: never. */
  get stalledAt(): number {
    return this.lastStall.end;
  }

  /** Something is due at this time. */
  tickBy(time: number): void {
    this.dueAt = Math.min(this.dueAt, time);
    this.alarm.setBy(time);
  }

  private nextLook(time: number, ttl: number): number {
    return Math.min(this.dueAt, time + lookAfter(ttl));
  }

  private tick(): void {
    countSuspend();
    this.byOwner = undefined;
    const time = now();
    if (time >= this.dueAt || time - this.seenAt >= this.shortestTtl / 3) this.work(time);
    this.seenAt = time;
    if (this.tenures.size > 0) this.alarm.setBy(this.nextLook(time, this.shortestTtl));
    else this.dueAt = this.shortestTtl = Infinity;
  }

  private work(time: number): void {
    const due = new Map<LeaseDriver, Tenure[]>();
    let firstRenewal = Infinity;
    let firstEnd = Infinity;
    let shortest: Tenure | undefined;
    let pace = 0;
    const over: Tenure[] = [];
    // Nothing leaves the list meanwhile: a copy of thousands of entries for each tick would cost a tenth of all renewals (`npm run bench -- w5`).
    for (let tenure = this.tenures.first; tenure; tenure = tenure.next) {
      if (!shortest || tenure.ttl < shortest.ttl) shortest = tenure;
      if (time >= tenure.validUntil) {
        over.push(tenure);
        continue;
      }
      firstEnd = Math.min(firstEnd, tenure.validUntil);
      if (!tenure.isRenewed) continue;
      pace = Math.min(pace || tenure.ttl / 3, tenure.ttl / 3);
      if (time >= tenure.renewAt) {
        const batch = due.get(tenure.driver);
        if (batch) batch.push(tenure);
        else due.set(tenure.driver, [tenure]);
        // A reply can be lost on a connection that stays open. So the next renewal does not wait for it.
        tenure.renewAt = time + Math.max(tenure.ttl / 3, SHORTEST_PAUSE);
      }
      firstRenewal = Math.min(firstRenewal, tenure.renewAt);
    }
    for (const tenure of over) tenure.expire();
    if (shortest) this.noticeStall(shortest, time);
    this.shortestTtl = shortest?.ttl ?? Infinity;
    // A tick gathers the renewals of a seventh of the shortest pace. Else thousands of leases would need as many ticks.
    this.dueAt = Math.min(firstEnd, Math.max(firstRenewal, time + pace / 7));
    for (const [driver, tenures] of due) this.renew(driver, tenures);
  }

  /** Warns if the event loop was just blocked for a third of the lease. */
  noticeStall(tenure: Tenure, time: number): void {
    const { key, ttl, runtime } = tenure;
    const length = this.stallOf(tenure, time);
    if (length === 0) return;
    this.seenAt = time;
    this.lastStall = { length, end: time };
    const tooLong = `The event loop stood still for ${Math.round(length)} ms, more than a third of the keyTimeout of ${ttl} ms of "${key}"`;
    const line = `${tooLong}: leases may be lost. Use a longer keyTimeout, or move the work that blocks off this thread.`;
    runtime.events.warn('NDL_EVENT_LOOP', line, { key, once: 'lag' });
    runtime.events.emit('lag', { lag: length, keyTimeout: ttl, key });
  }

  /** Why a lease has just expired, as a part of a sentence. */
  reasonFor(tenure: Tenure): string {
    const time = now();
    const { ttl, state } = tenure;
    if (state.is === 'ending' && !state.isRenewed) return 'its maxHold is over';
    if (!tenure.isRenewed) return `its ${ttl} ms are over`;
    const suspend = suspendedSince(time - ttl);
    if (suspend > 0)
      return `not renewed within ${ttl.toLocaleString('en-US')} ms, because the machine was suspended for ${duration(suspend)}`;
    const { length, end } = this.lastStall;
    const stall = this.stallOf(tenure, time) || (end > time - ttl && length >= ttl / 3 ? length : 0);
    return `not renewed within ${ttl.toLocaleString('en-US')} ms${stall === 0 ? '' : `, because the event loop stood still for ${Math.round(stall)} ms`}`;
  }

  /** For how many milliseconds the event loop was just blocked; 0: for less than a third of the lease. */
  private stallOf({ ttl, turn }: Tenure, time: number): number {
    // Without a tenure there are no ticks. Only a late tick shows that the event loop was blocked.
    if (time < this.alarm.at) return 0;
    const since = Math.max(this.seenAt, turn.grantedAt);
    const length = time - since - suspendedSince(since);
    return length < ttl / 3 ? 0 : length;
  }

  private renew(driver: LeaseDriver, tenures: readonly Tenure[]): void {
    let replies: readonly (Promise<'renewed' | 'lost'> | undefined)[] = [];
    const sentAt = now();
    tenures[0]?.runtime.openInbox();
    try {
      replies = driver.renew(tenures);
    } catch (fault) {
      replies = tenures.map(() => Promise.reject(fault));
    }
    tenures.forEach((tenure, index) => {
      const { ttl } = tenure;
      tenure.asks(sentAt);
      const reply = replies[index] ?? Promise.resolve('lost' as const);
      reply.then(
        (answer) => tenure.answered(answer, sentAt, ttl),
        (cause: unknown) => this.retry(tenure, cause, sentAt),
      );
    });
  }

  private retry(tenure: Tenure, cause: unknown, sentAt: number): void {
    const error = tenure.failed(cause);
    if (!this.tenures.has(tenure)) return;
    const pause = Math.min(Math.max(tenure.ttl / 10, SHORTEST_PAUSE), LONGEST_PAUSE);
    tenure.renewAt = Math.min(tenure.renewAt, now() + pause);
    tenure.runtime.unknown('renew', tenure, error, sentAt);
    this.tickBy(tenure.renewAt);
  }
}

/** The watchdog of this process. */
export const watchdog = new Watchdog();
