import { dateOf, now } from '../util/clock.js';
import { messageOf } from './errors.js';
import type { LockEventEmitter, LockEvents, LockKindName } from './events.js';

/** The kinds of event that an operator asks for afterwards. */
const EVENTS = ['lost', 'timeout', 'failed', 'forced', 'skipped'] as const;
const MINUTE = 60_000;
/** Events that are kept, and their characters. Events of the most frequent kind go first: a storm of one kind pushes out no other. */
const MOST = 200;
const MOST_CHARACTERS = 32_000;
const LONGEST_REASON = 200;

/** Equal events of one minute: the last of them, and how many. Times are milliseconds since 1970. */
export interface PastEvent {
  /** Larger than that of each event before. An event that has happened again has a new one. */
  readonly number: number;
  readonly event: (typeof EVENTS)[number];
  readonly key: string;
  readonly kind?: LockKindName;
  readonly label?: string;
  readonly owner?: string;
  readonly by?: string;
  readonly reason?: string;
  readonly waited?: number;
  readonly held?: number;
  readonly at: number;
  readonly firstAt: number;
  readonly count: number;
}

/** Keeps what an operator asks for afterwards, though nobody looked when it happened. It listens to that alone: a call that succeeds makes no event for it. */
export class PastEvents {
  private readonly kept = new Map<string, PastEvent>();
  private last = 0;
  private length = 0;

  constructor(events: LockEventEmitter) {
    for (const event of EVENTS) {
      const keep = (payload: LockEvents[typeof event]): void => {
        // A single try is no wait. What an operator takes away is `forced`.
        if ('waitTimeout' in payload && payload.waitTimeout === 0) return;
        if (event !== 'lost' || !('reason' in payload) || payload.reason !== 'forced') this.add({ ...payload, event });
      };
      events.on(event, keep, false);
    }
  }

  /** The events with a larger number, in the order of their numbers. */
  eventsAfter(number: number): PastEvent[] {
    return [...this.kept.values()].filter((event) => event.number > number);
  }

  private add(given: Omit<PastEvent, 'number' | 'at' | 'firstAt' | 'count'> & { readonly error?: Error }): void {
    const { kept } = this;
    const { event, key, kind, label, owner, by, waited, held, error } = given;
    const at = dateOf(now());
    const id = [event, Math.floor(at / MINUTE), key, label, owner, by].join(' ');
    const { firstAt = at, count = 0 } = kept.get(id) ?? {};
    const reason = (given.reason ?? (error && messageOf(error)))?.slice(0, LONGEST_REASON);
    // The last one comes last.
    this.delete(id);
    const last = { number: ++this.last, event, key, kind, label, owner, by, reason, waited, held, at, firstAt, count: count + 1 };
    kept.set(id, last);
    this.length += lengthOf(last);
    while (kept.size > MOST) this.drop(() => 1);
    while (this.length > MOST_CHARACTERS) this.drop(lengthOf);
  }

  /** Drops the oldest event of the kind that has most. */
  private drop(sizeOf: (event: PastEvent) => number): void {
    const sizes = new Map<PastEvent['event'], number>();
    for (const event of this.kept.values()) sizes.set(event.event, (sizes.get(event.event) ?? 0) + sizeOf(event));
    const [[largest] = []] = [...sizes].sort(([, a], [, b]) => b - a);
    const [oldest = ''] = [...this.kept].find(([, { event }]) => event === largest) ?? [];
    this.delete(oldest);
  }

  private delete(id: string): void {
    const event = this.kept.get(id);
    if (event && this.kept.delete(id)) this.length -= lengthOf(event);
  }
}

function lengthOf({ key, label = '', owner = '', reason = '' }: PastEvent): number {
  return key.length + label.length + owner.length + reason.length;
}
