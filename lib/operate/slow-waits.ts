import { processOf } from '../core/model/owner.js';
import { dateOf, duration, now } from '../core/util/clock.js';
import { holderOf, type Holder, type LockQueue } from '../core/waiting/lock-queue.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { Waiter } from '../core/waiting/waiter.js';

/** Milliseconds. A label is reported at most once in the longer, and the queues are searched at most once in the shorter. */
const AGAIN = 60_000;
const SHORTEST = 1000;
/** The most lines in the longer time: a program may make any number of labels. */
const MOST = 100;

interface Wait {
  readonly queue: LockQueue;
  readonly waiter: Waiter;
}

/** Warns about callers that wait for long, and names the holder. */
export class SlowWaits {
  /** When each label was reported last. */
  private readonly reported = new Map<string | undefined, number>();

  constructor(private readonly queues: LockQueues) {}

  /** Reports the waits that are slow by now. Returns when to call it again. */
  report(): number {
    const { all, slowWait } = this.queues;
    const time = now();
    const slowest = new Map<string | undefined, Wait>();
    let nextAt = Infinity;
    for (const queue of all) {
      for (const waiter of queue.waiting) {
        const { label, isStandby } = waiter.settings.options;
        if (isStandby) continue;
        const slowAt = waiter.startedAt + slowWait;
        nextAt = Math.min(nextAt, slowAt > time ? slowAt : time + AGAIN);
        const slower = slowest.get(label)?.waiter;
        if (slowAt <= time && !(slower && slower.startedAt <= waiter.startedAt)) slowest.set(label, { queue, waiter });
      }
    }
    for (const [label, at] of this.reported) if (at + AGAIN <= time) this.reported.delete(label);
    for (const [label, wait] of slowest) {
      if (this.reported.has(label) || this.reported.size >= MOST) continue;
      this.reported.set(label, time);
      void this.warn(wait);
    }
    return Math.max(nextAt, time + Math.min(SHORTEST, slowWait));
  }

  private async warn({ queue, waiter }: Wait): Promise<void> {
    const { key } = queue;
    const { label } = waiter.settings.options;
    const holder = (await holderNow(queue)) ?? queue.holder;
    // It may have the key by now.
    if (waiter.isOver) return;
    const { size } = queue.waiting;
    this.queues.runtime.events.warn(
      `${label ?? 'A caller'} has waited ${duration(waiter.waited)} for "${key}"${holder ? heldBy(holder) : ''}; ${size} ${size === 1 ? 'waits' : 'wait'} here`,
      { key, label, owner: holder?.owner },
    );
  }
}

/** Without the uuid, which does not help to find the process. The details of the line have it. */
function heldBy({ owner, label, since }: Holder): string {
  const age = since === undefined ? '' : ` for ${duration(now() - since)}`;
  return `, held${age} by ${processOf(owner)}${label === undefined ? '' : ` (${label})`}`;
}

/** Asks the store who has the key and since when, if it is no caller of this process. `undefined`: it does not answer. */
async function holderNow({ driver, key, holder }: LockQueue): Promise<Holder | undefined> {
  if (holder?.since !== undefined) return holder;
  try {
    const { holder: owner, token } = await driver.check({ key, owner: 'nobody' });
    const known = holderOf(key, owner);
    const grantedAt = token === null ? undefined : driver.timeOf?.(token);
    if (!known || known.since !== undefined || grantedAt === undefined) return known;
    // The store's clock and ours differ, so the age could be negative.
    return { ...known, since: now() - Math.max(0, dateOf(now()) - grantedAt.getTime()) };
  } catch {
    return undefined;
  }
}
