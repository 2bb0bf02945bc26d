import { onAbort } from '../util/abort.js';
import type { LeaseDriver } from '../store/lease-driver.js';
import { LockConfigError } from '../model/errors.js';
import type { Lease } from '../holding/lease.js';
import { LinkedList } from '../util/linked-list.js';
import { LockQueue } from './lock-queue.js';
import { defined } from '../model/options.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import type { TurnLimits } from '../holding/turns.js';
import type { AcquireSettings } from './waiter.js';

/** How long the callers of one process may pass a key on among themselves while another process waits for it. */
export interface LocalQueueOptions {
  /** How many holders in a row, from 1. As many fencing tokens are reserved at a time. Default 32. */
  handOvers?: number;
  /** Milliseconds from the first one's grant. A longer hold is not cut short. Default 50. */
  time?: number;
}

const DEFAULTS: TurnLimits = { handOvers: 32, time: 50 };

/** More tokens at a time would outrun the clock that they follow. */
const MOST = 1_000_000;

/** @throws {LockConfigError} naming the option. */
export function localQueueLimits(options: LocalQueueOptions = {}, where: string): TurnLimits {
  const fail = (problem: string): never => {
    throw new LockConfigError(`${where}: "localQueue"${problem}.`);
  };
  if (typeof options !== 'object' || options === null) fail(' must be an object');
  const limits = { ...DEFAULTS, ...defined(options) };
  for (const [name, value] of Object.entries(limits)) {
    const least = name === 'handOvers' ? 1 : 0;
    if (!(name in DEFAULTS)) fail(` has an unknown option "${name}"`);
    if (!Number.isSafeInteger(value) || value < least || value > MOST) fail(`.${name} must be a whole number from ${least} to ${MOST}`);
  }
  return limits;
}

/** Queues that nobody uses, kept for the next caller of their key: to make and to forget one costs as much as the rest of a lock. */
const MOST_IDLE = 1000;

/** The queues of all keys of one {@link Locks}. */
export class LockQueues {
  private readonly shared = new Map<LeaseDriver, Map<string, LockQueue>>();
  /** Of the shared ones those that nobody uses, the one that was used last at the end. */
  private readonly idle = new LinkedList<LockQueue>();
  /** Those of a single caller: a fair one, or one who takes a share, has a place of its own at the store; one with a single try waits for nobody. */
  private readonly own = new Set<LockQueue>();

  constructor(
    readonly runtime: Lifecycle,
    private readonly limits: TurnLimits,
  ) {
    onAbort(runtime.stopping, () => this.each((queue) => queue.stop()));
  }

  acquire(driver: LeaseDriver, key: string, settings: AcquireSettings): Promise<Lease> {
    const { fair, patience } = settings;
    // Behind whoever waits one would wait too, which nobody may who comes after the stop.
    const isAlone = driver.isShared || fair || patience === 0 || this.runtime.stopping.aborted;
    return (isAlone ? this.ownQueue(driver, key) : this.sharedQueue(driver, key)).join(settings);
  }

  close(): void {
    this.each((queue) => queue.close());
    for (const queue of this.idle) this.forget(queue);
  }

  private ownQueue(driver: LeaseDriver, key: string): LockQueue {
    const queue = new LockQueue(this.runtime, driver, key, this.limits, (idle) => this.own.delete(idle));
    this.own.add(queue);
    return queue;
  }

  private sharedQueue(driver: LeaseDriver, key: string): LockQueue {
    let queues = this.shared.get(driver);
    if (!queues) this.shared.set(driver, (queues = new Map<string, LockQueue>()));
    let queue = queues.get(key);
    if (queue) this.idle.delete(queue);
    else queues.set(key, (queue = new LockQueue(this.runtime, driver, key, this.limits, (idle) => this.keep(idle))));
    return queue;
  }

  private keep(queue: LockQueue): void {
    const { idle } = this;
    if (this.runtime.closed.aborted) return this.forget(queue);
    // A listener that hears of a timeout may have wanted the key, and no more.
    if (idle.has(queue)) return;
    idle.add(queue);
    const oldest = idle.first as LockQueue;
    if (idle.size > MOST_IDLE) this.forget(oldest);
  }

  private forget(queue: LockQueue): void {
    this.idle.delete(queue);
    this.shared.get(queue.driver)?.delete(queue.key);
  }

  private each(act: (queue: LockQueue) => void): void {
    for (const queues of [this.own, ...[...this.shared.values()].map((byKey) => byKey.values())])
      for (const queue of [...queues]) act(queue);
  }
}
