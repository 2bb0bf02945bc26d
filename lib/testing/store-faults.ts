import { watchdog } from '../core/holding/watchdog.js';
import { StoreError } from '../core/model/errors.js';
import { ownerIds } from '../core/model/owner.js';
import type { AcquireRequest, LeaseDriver } from '../core/store/lease-driver.js';
import { after } from '../core/util/clock.js';
import type { Locks } from '../locks.js';
import type { LockFaults } from './lock-faults.js';
import { isMeant, nearestKey, shownKey, type KeyPattern } from './key-pattern.js';
import type { FaultyRequest, ScheduledFault } from './scheduled-fault.js';
import { standStill } from './stand-still.js';

/** A grant that went through a faulty store. */
export interface Granted {
  readonly driver: LeaseDriver;
  readonly request: AcquireRequest;
}

/** What happens to one request. */
interface Once {
  readonly on: FaultyRequest;
  readonly does: 'refuse' | 'dropReply';
  readonly error?: unknown;
  readonly done: () => void;
}

const someoneElse = ownerIds('someone-else');

/** {@link LockFaults}, and what a faulty store asks of them. */
export class StoreFaults implements LockFaults {
  /** By owner. */
  private readonly granted = new Map<string, Granted>();
  private readonly locks = new Set<Locks>();
  private readonly taken: KeyPattern[] = [];
  private once: Once[] = [];
  private schedule: { fault: ScheduledFault; count: number }[];
  private outages = 0;
  private era = 0;
  private isBegun = false;
  /** How late each reply is. */
  delay = 0;

  /** @param schedule what happens by itself. */
  constructor(schedule: readonly ScheduledFault[] = []) {
    this.schedule = schedule.map((fault) => ({ fault, count: 0 }));
  }

  async lose(key: KeyPattern = '*'): Promise<void> {
    const held = [...this.granted].filter(([, { request }]) => isMeant(key, request.key));
    if (held.length === 0) {
      const keys = [...this.granted.values()].map(({ request }) => request.key);
      const others = keys.length === 0 ? 'Nothing is held.' : `Held: ${keys.join(', ')}.`;
      throw new Error(`faults.lose(${shownKey(key)}): nobody holds it. ${others}${nearestKey(key, keys)}`);
    }
    await Promise.all(held.map(([owner, grant]) => this.take(owner, grant)));
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
    const drop = (): Promise<void> => new Promise((done) => this.once.push({ on, does: 'dropReply', done }));
    await Promise.all(Array.from({ length: times }, drop));
  }

  slow(ms: number): void {
    this.delay = ms;
  }

  timeOut(key: KeyPattern): void {
    this.taken.push(key);
  }

  stall(ms: number): Promise<void> {
    return standStill(ms);
  }

  async shutDown(): Promise<void> {
    for (const each of this.locks) each.stopWaiting();
    await Promise.all([...this.locks].map((each) => each.close()));
  }

  clear(): void {
    this.era++;
    this.outages = this.delay = 0;
    this.taken.length = 0;
    this.schedule = [];
    this.once = [];
  }

  /** {@link shutDown} closes these. */
  closes(locks: Locks): void {
    this.locks.add(locks);
  }

  /** To be called before each request that a schedule can name. Resolves to what happens to it. */
  async before(on: FaultyRequest, owner: string): Promise<Once | undefined> {
    if (on === 'acquire') this.begin();
    for (const entry of this.schedule) {
      const { fault } = entry;
      if (!('on' in fault) || fault.on !== on || ++entry.count !== (fault.nth ?? 1)) continue;
      // An acquire holds nothing yet: it loses what it is granted.
      if ('lose' in fault && on === 'acquire') after(0, () => void this.start(fault, owner)).unref();
      else await this.start(fault, owner);
    }
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

  /** The times of a schedule count from the first acquire, however long the app took to start. */
  private begin(): void {
    if (this.isBegun) return;
    this.isBegun = true;
    for (const { fault } of this.schedule) {
      const { era } = this;
      if ('at' in fault) after(fault.at, () => void (era === this.era && this.start(fault))).unref();
    }
  }

  /** @param owner of the request at which it begins. */
  private async start(fault: ScheduledFault, owner?: string): Promise<void> {
    if ('lose' in fault) {
      const key = fault.lose === true ? '*' : fault.lose;
      const held = [...this.granted].filter(([each, { request }]) => (owner === undefined || each === owner) && isMeant(key, request.key));
      await Promise.all(held.map(([each, grant]) => this.take(each, grant)));
    } else if ('outage' in fault) this.outage(fault.outage);
    else if ('slow' in fault) this.slow(fault.slow);
    else if ('timeOut' in fault) this.timeOut(fault.timeOut);
    else if ('refuse' in fault) void this.refuse(fault.refuse);
    else if ('dropReply' in fault) void this.dropReply(fault.dropReply);
    else if ('stall' in fault) await this.stall(fault.stall);
    else void this.shutDown();
  }

  private async take(owner: string, { driver, request }: Granted): Promise<void> {
    this.granted.delete(owner);
    const { key, ttl, share } = request;
    await driver.acquire({ key, owner: someoneElse(), ttl, tokens: 1, queue: false, share, yields: owner });
    watchdog.tenureOf(key, owner)?.lose('it was taken away by a fault of the test', 'taken');
  }
}
