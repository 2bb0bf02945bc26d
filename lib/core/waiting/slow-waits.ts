import { holderOf, named, type Holder } from '../holding/holder.js';
import type { Lifecycle } from '../holding/lifecycle.js';
import { processOf } from '../model/owner.js';
import { after, dateOf, now } from '../util/clock.js';
import { duration } from '../util/duration.js';
import type { LockQueue } from './lock-queue.js';
import type { Waiter } from './waiter.js';

/** Milliseconds. A label is reported at most once in the longer, and the queues are searched at most once in the shorter. */
const AGAIN = 60_000;
const SHORTEST = 1000;
/** The most lines in the longer time: a program may make any number of labels. */
const MOST = 100;

interface Wait {
  readonly queue: LockQueue;
  readonly waiter: Waiter;
}

/**
 * Warns about callers that wait for long, and names the holder. One timer serves all callers of a {@link Locks}, so a wait needs none of its own. It
 * runs only while callers wait.
 */
export class SlowWaits {
  private timer: NodeJS.Timeout | undefined;
  private looksAt = Infinity;
  /** When each label was reported last. */
  private readonly reported = new Map<string | undefined, number>();

  /** @param slowWait milliseconds; `Infinity`: off. */
  constructor(
    private readonly runtime: Lifecycle,
    private readonly slowWait: number,
    private readonly queues: () => readonly LockQueue[],
  ) {}

  /** A caller begins to wait. */
  begins({ settings, startedAt }: Waiter): void {
    if (settings.patience <= this.slowWait || this.slowWait === Infinity) return;
    if (startedAt + this.slowWait < this.looksAt) this.lookAt(startedAt + this.slowWait);
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private lookAt(time: number): void {
    clearTimeout(this.timer);
    this.looksAt = time;
    if (time < Infinity) this.timer = after(time - now(), () => this.look()).unref();
  }

  private look(): void {
    const time = now();
    const slowest = new Map<string | undefined, Wait>();
    let nextAt = Infinity;
    for (const queue of this.queues()) {
      for (const waiter of queue.waiting) {
        const { label, isStandby } = waiter.settings.options;
        if (isStandby) continue;
        const slowAt = waiter.startedAt + this.slowWait;
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
    this.lookAt(Math.max(nextAt, time + Math.min(SHORTEST, this.slowWait)));
  }

  private async warn({ queue, waiter }: Wait): Promise<void> {
    const { key } = queue;
    const { label } = waiter.settings.options;
    const holder = (await holderNow(queue)) ?? queue.holder;
    // It may have the key by now.
    if (waiter.isOver) return;
    const by = holder
      ? `, held${holder.since === undefined ? '' : ` for ${duration(now() - holder.since)}`} by ${named(short(holder))}`
      : '';
    const { size } = queue.waiting;
    this.runtime.events.warn(
      `${label ?? 'A caller'} has waited ${duration(waiter.waited)} for "${key}"${by}; ${size} ${size === 1 ? 'waits' : 'wait'} here`,
      { key, label, owner: holder?.owner },
    );
  }
}

/** Without the uuid, which does not help to find the process. The details have it. */
function short({ owner, label }: Holder): Pick<Holder, 'owner' | 'label'> {
  return { owner: processOf(owner), label };
}

/** Asks the store who has the key and since when, if it is no caller of this process. `undefined`: it does not answer. */
async function holderNow({ driver, key, holder }: LockQueue): Promise<Holder | undefined> {
  if (holder?.since !== undefined) return holder;
  try {
    const { holder: owner, token } = await driver.check({ key, owner: 'nobody' });
    const known = holderOf(key, undefined, owner);
    const grantedAt = token === null ? undefined : driver.timeOf?.(token);
    if (!known || known.since !== undefined || grantedAt === undefined) return known;
    // The store's clock and ours differ, so the age could be negative.
    return { ...known, since: now() - Math.max(0, dateOf(now()) - grantedAt.getTime()) };
  } catch {
    return undefined;
  }
}
