import { watchdog } from '../core/holding/watchdog.js';
import { StoreError } from '../core/model/errors.js';
import { ownerIds } from '../core/model/owner.js';
import type { AcquireRequest, LeaseDriver } from '../core/store/lease-driver.js';
import { after } from '../core/util/clock.js';
import type { Locks } from '../locks.js';
import type { FaultyRequest, LockFaults } from './lock-faults.js';
import { isMeant, shownKey, type KeyPattern } from './key-pattern.js';
import { fakeClock, settled } from './fake-clock.js';

/** A fault of one request. */
interface Once {
  readonly on: FaultyRequest;
  readonly does: 'refuse' | 'dropReply';
  readonly error?: unknown;
  readonly done: () => void;
}

const someoneElse = ownerIds('someone-else');

/** {@link LockFaults}, and what a faulty store asks of them. */
export class StoreFaults implements LockFaults {
  /** The grants that went through the store and are held, by owner. */
  private readonly granted = new Map<string, { readonly driver: LeaseDriver; readonly request: AcquireRequest }>();
  private readonly locks = new Set<Locks>();
  /** Releases what is held elsewhere, which must be done when a store is closed. */
  readonly elsewhere: (() => Promise<void>)[] = [];
  private readonly taken: KeyPattern[] = [];
  private once: Once[] = [];
  private outages = 0;
  private era = 0;
  /** How late each reply is. */
  delay = 0;

  async lose(key: KeyPattern = '*'): Promise<void> {
    const held = [...this.granted].filter(([, { request }]) => isMeant(key, request.key));
    if (held.length === 0) {
      const keys = [...this.granted.values()].map(({ request }) => request.key);
      const others = keys.length === 0 ? 'Nothing is held.' : `Held: ${keys.join(', ')}.`;
      throw new Error(`faults.lose(${shownKey(key)}): nobody holds it. ${others}`);
    }
    await Promise.all(
      held.map(async ([owner, { driver, request }]) => {
        this.granted.delete(owner);
        const { key: own, ttl, share } = request;
        await driver.acquire({ key: own, owner: someoneElse(), ttl, tokens: 1, queue: false, share, yields: owner });
        watchdog.tenureOf(own, owner)?.lose('it was taken away by a fault of the test', 'taken');
      }),
    );
  }

  outage(until?: number | PromiseLike<unknown>): void {
    const { era } = this;
    this.outages++;
    const end = (): void => {
      if (era === this.era) this.outages--;
    };
    if (typeof until === 'number') after(until, end).unref();
    else void until?.then(end, end);
  }

  refuse(on: FaultyRequest, error: unknown = new StoreError('NOPERM this user has no permissions', { transient: false })): Promise<void> {
    return new Promise((done) => this.once.push({ on, does: 'refuse', error, done }));
  }

  async dropReply(on: FaultyRequest, times = 1): Promise<void> {
    await Promise.all(Array.from({ length: times }, () => new Promise<void>((done) => this.once.push({ on, does: 'dropReply', done }))));
  }

  slow(ms: number): void {
    this.delay = ms;
  }

  timeOut(key: KeyPattern): void {
    this.taken.push(key);
  }

  /** No timer is called in time, and each that was due is called once, late. Under fake timers the clock jumps; else the thread really blocks. */
  async stall(ms: number): Promise<void> {
    const clock = fakeClock();
    if (clock) {
      await settled();
      clock.jump(ms);
    } else for (const end = performance.now() + ms; performance.now() < end;);
    await settled();
  }

  async shutDown(): Promise<void> {
    for (const each of this.locks) each.stopWaiting();
    await Promise.all([...this.locks].map((each) => each.close()));
  }

  clear(): void {
    this.era++;
    this.outages = this.delay = 0;
    this.taken.length = 0;
    this.once = [];
  }

  /** {@link shutDown} closes these. */
  closes(locks: Locks): void {
    this.locks.add(locks);
  }

  /** The fault of a request that is about to be sent. */
  next(on: FaultyRequest): Once | undefined {
    const index = this.isOut ? -1 : this.once.findIndex((each) => each.on === on);
    return index < 0 ? undefined : this.once.splice(index, 1)[0];
  }

  /** Whether there is an outage. */
  get isOut(): boolean {
    return this.outages > 0;
  }

  /** Whether {@link timeOut} was called for it. */
  isTaken(key: string): boolean {
    return this.taken.some((pattern) => isMeant(pattern, key));
  }

  /** The store has granted this. */
  grants(driver: LeaseDriver, request: AcquireRequest): void {
    this.granted.set(request.owner, { driver, request });
  }

  /** The owner has given its key up, or had it taken away. */
  isGone(owner: string | undefined): void {
    if (owner !== undefined) this.granted.delete(owner);
  }
}
