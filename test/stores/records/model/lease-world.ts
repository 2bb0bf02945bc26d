import { keptBy } from '../../../../lib/core/model/owner.js';
import type { LeaseDriver, Share } from '../../../../lib/core/store/lease-driver.js';
import type { LeaseRecord } from '../../../../lib/stores/records/record.work.js';
import { Actor, KEY, StepWorld, TTL, type Misfortune, type Process } from './step-world.js';
import { clock, OFFSET } from './stopped-clock.js';

/**
 * What an owner asks for, one letter each:
 * A: acquire; Q: acquire, and queue; N: renew; R: release, or leave if it was not granted; K: as R, with a minHold; L: leave.
 * Once it is granted it asks for no second grant. What has no answer to its end (R, K, L) is asked again.
 */
export interface Scenario extends Misfortune {
  /** `count`: permits of a semaphore. */
  readonly owners: readonly { readonly process: number; readonly script: string; readonly count?: number }[];
  /** Of a semaphore; without it the lock is a mutex. */
  readonly permits?: number;
}

class Owner extends Actor {
  /** When the lease ends that it was told of; 0: it holds none. */
  validUntil = 0;
  /** Whether an end of it had no answer: a repeat may say anything. */
  isRepeated = false;
  /** It has given up what it had, and that was answered. */
  isOver = false;
  /** It was refused, and waits. */
  isQueued = false;
  /** So it ends by a release. */
  hasHeld = false;
  count = 1;
}

/** Owners of several processes that want the same key. */
export class LeaseWorld extends StepWorld<Owner> {
  private readonly permits: number;
  private readonly isShared: boolean;
  /** All that were given. */
  private readonly tokens = new Set<number>();

  constructor(scenario: Scenario) {
    super(scenario);
    const { owners, permits } = scenario;
    this.permits = permits ?? 1;
    this.isShared = permits !== undefined;
    for (const { process, script, count = 1 } of owners) {
      this.actors.push(Object.assign(new Owner(`o${this.actors.length}`, this.processAt(process), script), { count }));
    }
  }

  async end(): Promise<void> {
    const request = { key: KEY, owner: 'stranger', ttl: TTL, tokens: 1, queue: false, share: this.shareOf(this.permits) };
    const { granted } = await this.later((process) => this.driverOf(process).acquire(request));
    if (!granted) throw new Error('a stranger does not get the key at the end');
  }

  protected nextStep(owner: Owner): string | undefined {
    const next = (): string => owner.script[owner.done] ?? '';
    while ((owner.validUntil > 0 && /[AQ]/.test(next())) || (owner.validUntil === 0 && next() === 'N')) owner.done++;
    return next() || undefined;
  }

  protected ask(owner: Owner, step: string): void {
    const { process, id, validUntil } = owner;
    const sentAt = clock.time;
    const tenancy = { key: KEY, owner: id };
    const driver = this.driverOf(process);
    const unknown = (): void => void owner.done++;
    if (step === 'A' || step === 'Q') {
      const request = { ...tenancy, ttl: TTL, tokens: 1, queue: step === 'Q', share: this.shareOf(owner.count) };
      const answered = (reply: Awaited<ReturnType<LeaseDriver['acquire']>>): void => {
        owner.done++;
        owner.isQueued = !reply.granted && step === 'Q';
        if (reply.granted) this.granted(owner, reply.token!, sentAt + TTL);
      };
      return this.settled(owner, driver.acquire(request), answered, unknown);
    }
    if (step === 'N') {
      const answered = (reply: 'renewed' | 'lost'): void => {
        owner.done++;
        if (reply === 'lost' && clock.time < validUntil) this.fail(`${id} has lost its lease while it lasts`);
        owner.validUntil = reply === 'renewed' ? Math.max(validUntil, sentAt + TTL) : 0;
      };
      return this.settled(owner, driver.renew([{ ...tenancy, ttl: TTL }])[0]!, answered, unknown);
    }
    owner.validUntil = 0;
    owner.isQueued = false;
    const again = (): void => void (owner.isRepeated = true);
    const over = (): void => {
      owner.done++;
      owner.isOver = true;
    };
    if (step === 'L' || !owner.hasHeld) return this.settled(owner, driver.leave(tenancy), over, again);
    const answered = (reply: 'released' | 'lost'): void => {
      if (reply === 'lost' && !owner.isRepeated && clock.time < validUntil) this.fail(`${id} releases, and is told that it was lost`);
      over();
    };
    return this.settled(owner, driver.release({ ...tenancy, keepFor: step === 'K' ? TTL : 0 }), answered, again);
  }

  check(): void {
    const holders = this.actors.filter(({ validUntil, process }) => process.isAlive && validUntil > clock.time);
    if (holders.reduce((sum, { count }) => sum + count, 0) > this.permits) {
      throw new Error(`${holders.map(({ id }) => id).join(' and ')} hold the key at the same time`);
    }
    const record = this.record as LeaseRecord | undefined;
    if (!record) return;
    const { holds, queue, permits } = record;
    const taken = holds.reduce((sum, { count }) => sum + count, 0);
    if (taken > permits) throw new Error('more is held than there is');
    // A waiter of a key that has run out asks for it by itself.
    if (!this.hasPaused && queue[0] && taken + queue[0].count <= permits)
      throw new Error('somebody waits, and is not offered what is free');
    for (const owner of this.actors) this.checkOwner(owner, record, clock.time + OFFSET);
  }

  private checkOwner({ id, isOver, isQueued, isWoken, isAsking, process }: Owner, { holds, queue }: LeaseRecord, time: number): void {
    const hold = holds.find(({ owner, endsAt }) => owner === id && endsAt > time);
    const entry = queue.find(({ owner }) => owner === id);
    if (isOver && (hold || entry)) throw new Error(`${id} has ended, and ${hold ? 'has the key' : 'waits'}`);
    if (hold && entry) throw new Error(`${id} waits for what it has`);
    if (hold && holds.some(({ owner }) => owner === keptBy(id))) throw new Error(`${id} holds the key, and has released it`);
    const mayBeTold = this.processes.some(({ steps, hasFailed, isAlive }) => hasFailed || !isAlive || steps.exchanges.length > 0);
    const isTold = isWoken || isAsking || mayBeTold || !process.isAlive;
    if (isQueued && hold?.token === null && !isTold) throw new Error(`${id} is offered the key, and not told`);
  }

  private granted(owner: Owner, token: number, validUntil: number): void {
    const [first, last] = owner.process.tokens;
    if (this.tokens.has(token)) this.fail(`${owner.id} gets the token ${token} of another grant`);
    if (token < first || token > last) this.fail(`${owner.id} gets the token ${token}, and ${first} to ${last} were reserved`);
    this.tokens.add(token);
    owner.validUntil = validUntil;
    owner.hasHeld = true;
  }

  private driverOf({ drivers }: Process): LeaseDriver {
    return this.isShared ? drivers.semaphore : drivers.mutex;
  }

  private shareOf(count: number): Share | undefined {
    return this.isShared ? { count, permits: this.permits, rank: 0 } : undefined;
  }
}
