import type { HeldLease } from '../holding/held-lease.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import type { TurnLimits } from '../holding/grant.js';
import type { LeaseDriver } from '../store/lease-driver.js';
import { onAbort } from '../util/abort.js';
import { LinkedList } from '../util/linked-list.js';
import { LockQueue } from './lock-queue.js';
import { SlowWaits } from './slow-waits.js';
import type { Wish } from './waiter.js';

/** Idle queues are kept for the next caller of their key: a new queue costs as much as the rest of an acquire. */
const MOST_IDLE = 1000;

/** The queues of all keys of one {@link Locks}. */
export class LockQueues {
  private readonly shared = new Map<LeaseDriver, Map<string, LockQueue>>();
  /** The shared queues without callers and holders. The one that was used last is at the end. */
  private readonly idle = new LinkedList<LockQueue>();
  /** The queues of a single caller. */
  private readonly own = new Set<LockQueue>();
  readonly slow: SlowWaits;

  constructor(
    readonly runtime: Lifecycle,
    readonly limits: TurnLimits,
    slowWait: number,
  ) {
    this.slow = new SlowWaits(runtime, slowWait, () => this.all);
    onAbort(runtime.stopping, () => this.each((queue) => queue.stop()));
  }

  /**
   * @param id of the queue that the caller shares with others of this process.
   * @param places how many of them may hold the key at the same time; 0: each caller has a queue of its own.
   */
  acquire(driver: LeaseDriver, key: string, id: string, places: number, wish: Wish): Promise<HeldLease> {
    // A fair caller has its own queue entry at the store. A single try does not wait for other callers, and after the stop no caller may wait.
    const isAlone = places === 0 || wish.options.fair || wish.patience === 0 || this.runtime.stopping.aborted || driver.grantsAll;
    return (isAlone ? this.ownQueue(driver, key) : this.sharedQueue(driver, key, id, places)).join(wish);
  }

  close(): void {
    this.slow.close();
    this.each((queue) => queue.close());
    for (const queue of this.idle) this.forget(queue);
  }

  /** The queue has neither callers nor holders. */
  rest(queue: LockQueue): void {
    if (queue.id === undefined) return void this.own.delete(queue);
    if (this.runtime.closed.aborted) return this.forget(queue);
    // A `timeout` listener may have taken the key and released it.
    if (this.idle.has(queue)) return;
    this.idle.add(queue);
    if (this.idle.size > MOST_IDLE) this.forget(this.idle.first as LockQueue);
  }

  private ownQueue(driver: LeaseDriver, key: string): LockQueue {
    const queue = new LockQueue(this, driver, key, undefined, 1);
    this.own.add(queue);
    return queue;
  }

  private sharedQueue(driver: LeaseDriver, key: string, id: string, places: number): LockQueue {
    let queues = this.shared.get(driver);
    if (!queues) this.shared.set(driver, (queues = new Map<string, LockQueue>()));
    let queue = queues.get(id);
    if (queue) this.idle.delete(queue);
    else queues.set(id, (queue = new LockQueue(this, driver, key, id, places)));
    queue.places = places;
    return queue;
  }

  private forget(queue: LockQueue): void {
    this.idle.delete(queue);
    this.shared.get(queue.driver)?.delete(queue.id ?? queue.key);
  }

  get all(): readonly LockQueue[] {
    return [...this.own, ...[...this.shared.values()].flatMap((byId) => [...byId.values()])];
  }

  private each(act: (queue: LockQueue) => void): void {
    for (const queue of this.all) act(queue);
  }
}
