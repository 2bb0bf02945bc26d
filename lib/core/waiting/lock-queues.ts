import type { HeldLease } from '../holding/held-lease.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import type { Tenure, TurnLimits } from '../holding/tenure.js';
import type { Turn } from '../holding/turn.js';
import type { LeaseDriver } from '../store/lease-driver.js';
import { onAbort } from '../util/abort.js';
import { Alarm, now } from '../util/clock.js';
import { LockQueue } from './lock-queue.js';
import type { AcquireCall, Waiter } from './waiter.js';

/** Most keys that are kept for operators after their release. */
const MOST_KEPT = 1_000;
/** Most callers whose deadlock is looked for in one iteration of the event loop, and most keys of one: thousands can time out together. */
const MOST_SEARCHED = 100;

/** A key that was released, and stays taken until its minHold is over; or was handed over, and can be adopted until then. */
export interface KeptKey extends Pick<Turn, 'label' | 'grantedAt' | 'fencingToken' | 'keepUntil'> {
  readonly key: string;
  readonly owner: string;
  readonly isHandedOver: boolean;
}

/** The queues of all keys of one {@link Locks}. */
export class LockQueues {
  /** Keyed by id: a number where the queue is for a single caller. */
  private readonly queues = new Map<LeaseDriver, Map<string | number, LockQueue>>();
  private lastOwn = 0;
  /** Owners of tickets that an adoption which was called off may still have: it is being undone. */
  readonly calledOff = new Set<string>();
  private searches = 0;
  /** The queue in which the holder of a lease waits, by its owner. It is for the searches of one iteration of the event loop. */
  private readonly waitsIn = new Map<string, LockQueue>();
  /** Keys that stay taken by their last owner: for operators. */
  readonly kept = new Map<string, KeptKey>();
  private readonly forgetKept = new Alarm(() => {
    const time = now();
    for (const { owner, keepUntil } of this.kept.values()) {
      if (keepUntil <= time) this.kept.delete(owner);
      else this.forgetKept.setBy(keepUntil);
    }
  });
  /** One timer serves all callers, so a wait needs none of its own. */
  private readonly slowWaits: Alarm;

  /**
   * @param slowWait milliseconds after which a wait is reported; `Infinity`: never.
   * @param report reports the slow waits, and resolves to when to do it again.
   */
  constructor(
    readonly runtime: Lifecycle,
    readonly limits: TurnLimits,
    readonly slowWait: number,
    report: () => Promise<number>,
  ) {
    // Nobody must miss a lock because a warning fails.
    this.slowWaits = new Alarm(async () => this.slowWaits.setBy(await report().catch(() => Infinity)));
    onAbort(runtime.stopping, () => this.all.forEach((queue) => queue.stop()));
  }

  /** The key was released, and stays taken for its minHold, if it has one; or it was handed over. */
  keep({ key, owner: holder, state, turn: { label, grantedAt, fencingToken, keepUntil: end } }: Tenure): void {
    const isHandedOver = state.is === 'handedOver';
    const { owner, until: keepUntil } = isHandedOver ? state : { owner: holder, until: end };
    if (keepUntil === grantedAt || keepUntil <= now() || this.runtime.closed.aborted) return;
    this.kept.set(owner, { key, owner, label, grantedAt, fencingToken, keepUntil, isHandedOver });
    if (this.kept.size > MOST_KEPT) this.kept.delete(this.kept.keys().next().value!);
    this.forgetKept.setBy(keepUntil);
  }

  /**
   * @param id of the queue that the caller shares with others of this process.
   * @param maxHolders how many of them may hold the key at the same time; 0: each caller has a queue of its own.
   */
  acquire(driver: LeaseDriver, key: string, id: string, maxHolders: number, call: AcquireCall): Promise<HeldLease> {
    // A fair caller has its own queue entry at the store. A single try does not wait for other callers, and after the stop few callers wait.
    const isAlone = maxHolders === 0 || call.options.fair || call.patience === 0 || this.runtime.stopping.aborted;
    return (isAlone ? this.queueOf(driver, key, ++this.lastOwn, 1) : this.queueOf(driver, key, id, maxHolders)).join(call);
  }

  /** A caller begins to wait. */
  waits({ settings, startedAt }: Waiter): void {
    if (settings.patience > this.slowWait) this.slowWaits.setBy(startedAt + this.slowWait);
  }

  close(): void {
    this.slowWaits.stop();
    this.forgetKept.stop();
    this.all.forEach((queue) => queue.close());
  }

  /** Removes a queue, if it has neither callers nor holders. */
  forgetIdle(queue: LockQueue): void {
    if (queue.waiting.size > 0 || queue.holders.length > 0) return;
    const queues = this.queues.get(queue.driver);
    // A `timeout` listener may have taken the key and released it, and another caller may have made the next queue.
    if (queues?.get(queue.id) === queue) queues.delete(queue.id);
  }

  /**
   * The keys of a deadlock among the callers of this process: that of the queue, the one that its holder waits for, and so on, the last of which this
   * caller holds. `undefined`: none is found. If a holder waits for several keys, one is looked at: `waitGraph` finds all.
   */
  deadlockOf(start: LockQueue, { holding }: Waiter): readonly string[] | undefined {
    // Most callers hold nothing, and can be in none. They must not cost a search.
    if (holding.length === 0 || ++this.searches > MOST_SEARCHED) return undefined;
    if (this.searches === 1) {
      for (const queue of this.all)
        for (const waiter of queue.waiting) for (const { owner } of waiter.holding) this.waitsIn.set(owner, queue);
      setImmediate(() => {
        this.searches = 0;
        this.waitsIn.clear();
      });
    }
    const keys: string[] = [];
    let queue: LockQueue | undefined = start;
    // Behind several holders, a caller waits for one of them only.
    while (queue?.holder && !queue.driver.isShared && keys.length < MOST_SEARCHED) {
      const { holder, key }: LockQueue = queue;
      keys.push(key);
      if (holding.some(({ owner }) => owner === holder?.owner)) return keys;
      queue = this.waitsIn.get(holder.owner);
    }
    return undefined;
  }

  private queueOf(driver: LeaseDriver, key: string, id: string | number, maxHolders: number): LockQueue {
    let queues = this.queues.get(driver);
    if (!queues) this.queues.set(driver, (queues = new Map<string | number, LockQueue>()));
    let queue = queues.get(id);
    if (!queue) queues.set(id, (queue = new LockQueue(this, driver, key, id, maxHolders)));
    queue.maxHolders = maxHolders;
    return queue;
  }

  get all(): readonly LockQueue[] {
    return [...this.queues.values()].flatMap((byId) => [...byId.values()]);
  }
}
