import { dateOf, now } from '../util/clock.js';
import { messageOf } from './errors.js';
import type { LockEventEmitter, LockEvents, LockKindName } from './events.js';

/** The kinds of event that an operator asks for afterwards. */
const EVENTS = ['lost', 'timeout', 'forced', 'failed'] as const;
const MINUTE = 60_000;
/** Events kept of each kind, so that none pushes out another: 200 and some 40 kB in all. */
const MOST = 50;
const MOST_CHARACTERS = 8_000;
const LONGEST_REASON = 200;

/** Equal events of one minute: the last of them, and how many. Times are milliseconds since 1970. */
export interface PastEvent {
  readonly event: (typeof EVENTS)[number];
  readonly key: string;
  readonly kind?: LockKindName;
  readonly label?: string;
  readonly owner?: string;
  readonly by?: string;
  readonly reason?: string;
  readonly held?: number;
  readonly at: number;
  readonly firstAt: number;
  readonly count: number;
}

/** Keeps what an operator asks for afterwards, though nobody looked when it happened. It listens to that alone: a call that succeeds makes no event for it. */
export class PastEvents {
  private readonly kept = EVENTS.map(() => new Map<string, PastEvent>());

  constructor(events: LockEventEmitter) {
    EVENTS.forEach((event, index) => {
      const keep = (payload: LockEvents[typeof event]): void => {
        if (!('waitTimeout' in payload && payload.waitTimeout === 0)) this.add(this.kept[index]!, { ...payload, event });
      };
      events.on(event, keep, false);
    });
  }

  get all(): PastEvent[] {
    return this.kept.flatMap((events) => [...events.values()]);
  }

  private add(kept: Map<string, PastEvent>, given: Omit<PastEvent, 'at' | 'firstAt' | 'count'> & { readonly error?: Error }): void {
    const { event, key, kind, label, owner, by, held, error } = given;
    const at = dateOf(now());
    const id = `${Math.floor(at / MINUTE)} ${key} ${label} ${by}`;
    const { firstAt = at, count = 0 } = kept.get(id) ?? {};
    const reason = (given.reason ?? (error && messageOf(error)))?.slice(0, LONGEST_REASON);
    // The last one comes last.
    kept.delete(id);
    kept.set(id, { event, key, kind, label, owner, by, reason, held, at, firstAt, count: count + 1 });
    while (kept.size > MOST || lengthOf(kept) > MOST_CHARACTERS) kept.delete(kept.keys().next().value!);
  }
}

function lengthOf(kept: Map<string, PastEvent>): number {
  let sum = 0;
  for (const { key, label = '', owner = '', reason = '' } of kept.values()) sum += key.length + label.length + owner.length + reason.length;
  return sum;
}
