import type { Engine } from '../core/engine.js';
import { watchdog } from '../core/holding/watchdog.js';
import type { LocksHealth } from '../core/model/doctor-report.js';
import type { LockError } from '../core/model/errors.js';
import { checkStore } from '../core/store/store-check.js';
import { now, validity } from '../core/util/clock.js';

/** Milliseconds for which a blocked event loop counts. */
const LATELY = 60_000;

export async function healthOf({ store, queues, runtime, namespace, storeWatch }: Engine, within: number): Promise<LocksHealth> {
  const { createOwner } = runtime;
  const { refusal } = storeWatch;
  let roundTrip: number | undefined;
  let error: LockError | undefined;
  try {
    roundTrip = await checkStore(store, namespace, within, refusal && createOwner());
    if (refusal) storeWatch.granted();
  } catch (cause) {
    error = cause as LockError;
    storeWatch.failed(error);
  }
  const { wakeUps } = store.mutex;
  const tenures = watchdog.tenuresOf(runtime);
  const callers = queues.all.flatMap(({ waiting }) => [...waiting]);
  const waits = callers.filter(({ isWaiting, settings }) => isWaiting && !settings.options.isStandby).map(({ waited }) => waited);
  const degraded = {
    'waiters poll': wakeUps?.state === 'interrupted',
    // `validUntil` counts from the last renewal that was answered.
    'a renewal is unanswered for more than a third of its lease': tenures.some(
      ({ isRenewed, validUntil, ttl }) => isRenewed && now() - (validUntil - validity(ttl)) > (2 * ttl) / 3,
    ),
    'the event loop was blocked within the last minute': now() - watchdog.stalledAt < LATELY,
  };
  return {
    isUp: error === undefined,
    error,
    degraded: [...Object.entries(degraded).flatMap(([what, isSo]) => (isSo ? [what] : [])), ...(store.degraded?.() ?? [])],
    roundTrip,
    wakeUps: wakeUps !== undefined && (wakeUps.state ?? 'woken') === 'woken',
    held: tenures.length,
    waiting: waits.length,
    oldestWait: waits.reduce((longest, wait) => Math.max(longest, wait), 0),
  };
}
