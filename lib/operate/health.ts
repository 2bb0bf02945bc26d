import type { Engine } from '../core/engine.js';
import type { Tenure } from '../core/holding/tenure.js';
import { watchdog } from '../core/holding/watchdog.js';
import type { LockError } from '../core/model/errors.js';
import type { LocksHealth } from '../core/model/doctor-report.js';
import { checkStore } from '../core/store/store-check.js';
import { now, validity } from '../core/util/clock.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';

/** Milliseconds for which a blocked event loop counts. */
const LATELY = 60_000;

export async function healthOf({ store, queues, runtime, namespace, storeWatch }: Engine, within: number): Promise<LocksHealth> {
  const { createOwner } = runtime;
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
  const tenures = watchdog.tenuresOf(runtime);
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
