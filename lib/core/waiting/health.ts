import type { Tenure } from '../holding/tenure.js';
import { watchdog } from '../holding/watchdog.js';
import type { LockError } from '../model/errors.js';
import type { LockStore } from '../store/lock-store.js';
import { checkStore } from '../store/store-check.js';
import { now, validity } from '../util/clock.js';
import type { LockQueues } from './lock-queues.js';

/** What {@link Locks.health} resolves to. Times are milliseconds. */
export interface LocksHealth {
  /** Whether the store answers, and grants locks. */
  readonly isUp: boolean;
  /** Why it does not. */
  readonly error: LockError | undefined;
  /** What does not work as it should, in words. */
  readonly degraded: readonly string[];
  /** How long the store took to answer; `undefined`: it did not. */
  readonly roundTrip: number | undefined;
  /** Whether waiters are notified; otherwise they poll. */
  readonly wakeUps: boolean;
  /** Keys that this process holds. */
  readonly held: number;
  /** Callers of this process that wait for a key, without the candidates of elections. */
  readonly waiting: number;
  /** How long the first of them has waited; 0: there is none. */
  readonly oldestWait: number;
}

/** Milliseconds for which a blocked event loop counts. */
const LATELY = 60_000;

export async function healthOf(store: LockStore, queues: LockQueues, namespace: string, within: number): Promise<LocksHealth> {
  const { storeWatch, createOwner } = queues.runtime;
  const { refusal } = storeWatch;
  const { roundTrip, error } = await checkStore(store, namespace, within, refusal && createOwner()).then(
    (took) => {
      if (refusal) storeWatch.granted();
      return { roundTrip: took, error: undefined };
    },
    (cause: LockError) => {
      storeWatch.failed(cause);
      return { roundTrip: undefined, error: cause };
    },
  );
  const { wakeUps } = store.mutex;
  const tenures = watchdog.tenuresOf(queues.runtime);
  const waits = waitsOf(queues);
  const degraded = {
    'waiters poll': wakeUps?.state === 'interrupted',
    'a renewal is unanswered for more than a third of its lease': tenures.some(isOverdue),
    'the event loop was blocked within the last minute': now() - watchdog.stalledAt < LATELY,
  };
  return {
    isUp: error === undefined,
    error,
    degraded: Object.entries(degraded).flatMap(([what, isSo]) => (isSo ? [what] : [])),
    roundTrip,
    wakeUps: wakeUps !== undefined && (wakeUps.state ?? 'woken') === 'woken',
    held: tenures.length,
    waiting: waits.length,
    oldestWait: waits.reduce((longest, wait) => Math.max(longest, wait), 0),
  };
}

/** `validUntil` counts from the last renewal that was answered. */
function isOverdue({ renewAt, validUntil, ttl, pace }: Tenure): boolean {
  return renewAt < Infinity && now() - (validUntil - validity(ttl)) > pace + ttl / 3;
}

function waitsOf({ all }: LockQueues): number[] {
  const waits: number[] = [];
  for (const { waiting } of all) {
    for (const { isWaiting, waited, settings } of waiting) if (isWaiting && !settings.options.isStandby) waits.push(waited);
  }
  return waits;
}
