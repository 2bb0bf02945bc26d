import type { Holder } from '../core/model/errors.js';
import { processOf } from '../core/model/owner.js';
import { dateOf, duration, now } from '../core/util/clock.js';
import { promised } from '../core/util/promised.js';
import { holderOf, type LockQueue } from '../core/waiting/lock-queue.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { Waiter } from '../core/waiting/waiter.js';

/** Milliseconds. A label is reported at most once in the longer, and the queues are searched at most once in the shorter. */
const AGAIN = 60_000;
const SHORTEST = 1000;
/** The most lines in the longer time: a program may make any number of labels. */
const MOST = 100;

/** Warns about callers that wait for long, and names the holder. */
export class SlowWaits {
  /** When each label was reported last. */
  private readonly reported = new Map<string | undefined, number>();

  constructor(private readonly queues: LockQueues) {}

  /** Reports the waits that are slow by now, of each label the longest. Returns when to call it again. */
  report(): number {
    const { reported, queues } = this;
    const { all, slowWait } = queues;
    const time = now();
    for (const [label, at] of reported) if (at + AGAIN <= time) reported.delete(label);
    const waits = all.flatMap((queue) => Array.from(queue.waiting, (waiter) => ({ queue, waiter })));
    let nextAt = Infinity;
    for (const { queue, waiter } of waits.sort((one, other) => one.waiter.startedAt - other.waiter.startedAt)) {
      const { label, isStandby } = waiter.settings.options;
      if (isStandby) continue;
      const slowAt = waiter.startedAt + slowWait;
      nextAt = Math.min(nextAt, slowAt > time ? slowAt : time + AGAIN);
      if (slowAt > time || reported.has(label) || reported.size >= MOST) continue;
      reported.set(label, time);
      void this.warn(queue, waiter, label);
    }
    return Math.max(nextAt, time + Math.min(SHORTEST, slowWait));
  }

  private async warn(queue: LockQueue, waiter: Waiter, label: string | undefined): Promise<void> {
    const { key } = queue;
    const holder = (await holderNow(queue)) ?? queue.holder;
    // It may have the key by now.
    if (waiter.isOver) return;
    const { size } = queue.waiting;
    const others = `${size} ${size === 1 ? 'waits' : 'wait'} here`;
    const line = `${label ?? 'A caller'} has waited ${duration(waiter.waited)} for "${key}"${holder ? heldBy(holder) : ''}; ${others}`;
    this.queues.runtime.events.warn('NDL_SLOW_WAIT', line, { key, label, owner: holder?.owner });
  }
}

/** Without the uuid, which does not help to find the process. The details of the line have it. */
function heldBy({ owner, label, since, keptUntil }: Holder): string {
  if (keptUntil !== undefined) return `, kept by the minHold of ${processOf(owner)}`;
  const age = since === undefined ? '' : ` for ${duration(now() - since)}`;
  return `, held${age} by ${processOf(owner)}${label === undefined ? '' : ` (${label})`}`;
}

/** Asks the store who has the key and since when, if it is no caller of this process. `undefined`: it does not answer. */
async function holderNow({ driver, key, holder }: LockQueue): Promise<Holder | undefined> {
  if (holder?.since !== undefined) return holder;
  const reply = await promised(() => driver.check({ key, owner: 'nobody' })).catch(() => undefined);
  const known = holderOf(key, reply?.holder, now());
  const grantedAt = reply?.token == null ? undefined : driver.timeOf?.(reply.token);
  if (!known || known.since !== undefined || grantedAt === undefined) return known;
  // The store's clock and ours differ, so the age could be negative.
  return { ...known, since: now() - Math.max(0, dateOf(now()) - grantedAt.getTime()) };
}
