import { randomUUID } from 'node:crypto';
import { checkOptions, type Checks } from '../../core/model/check-options.js';
import type { DoctorCheck, DoctorOptions, DoctorReport } from '../../core/model/doctor-report.js';
import type { StoreError } from '../../core/model/errors.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { checkStore } from '../../core/store/store-check.js';
import { checkOf } from '../../core/store/store-doctor.js';
import { dateOf, idle, now } from '../../core/util/clock.js';
import { ClockWatch } from './clock-watch.js';
import { Probe } from './probe.js';
import { measureRoundTrips } from './round-trips.js';
import { checkKeys } from './stale-keys.js';
import { verdictOf } from './verdict.js';

const PROBE = 3000;
/** The part of the time of the probe. */
const CLOCK_SHARE = 2 / 3;
const CHECKS: Checks = {
  probe: (value) =>
    value === false || (Number.isSafeInteger(value) && (value as number) >= 1) ? undefined : 'milliseconds, from 1 on, or false',
};

/**
 * Examines a store: what it says of its server, and how it behaves.
 *
 * @throws {StoreError} when the store cannot be reached, or refuses everything.
 */
export async function examine(
  store: LockStore,
  namespace: string,
  newOwner: () => string,
  options: DoctorOptions = {},
): Promise<DoctorReport> {
  checkOptions(options, 'Locks.doctor', CHECKS);
  const { probe: within = PROBE } = options;
  const limit = within === false ? PROBE : within;
  const { doctor, mutex, inspector } = store;
  const at = new Date(dateOf(now()));
  const refused = checkStore(store, namespace, store.requestTimeout).then(
    () => undefined,
    (error: StoreError) => error,
  );
  const clock = doctor?.time && new ClockWatch(() => doctor.time!());
  const clockEnd = idle(limit * CLOCK_SHARE);
  const own = (await doctor?.checks(namespace)) ?? [await hidden(store.name)];
  const refusal = await refused;
  // A server that refuses locks may still say why.
  if (refusal && own.every(({ state }) => state === 'unknown')) throw refusal;
  const key = `${namespace}nestjs-distributed-lock:doctor:${randomUUID()}`;
  const probe = within === false ? undefined : new Probe(mutex, key, [newOwner(), newOwner()], limit);
  const tried = (await probe?.checks()) ?? [];
  const { check, leastKeyTimeout } = await measureRoundTrips(mutex, key, limit, probe?.times ?? []);
  const keys = inspector ? await checkKeys(inspector, mutex, namespace) : [];
  if (clock) await clockEnd;
  const checks = [...own, ...((await clock?.checks()) ?? []), check, ...tried, ...keys];
  const rights = doctor?.rights?.(namespace);
  return { at, store: store.name, checks, leastKeyTimeout, verdict: verdictOf(checks), ...(rights !== undefined && { rights }) };
}

/** Nothing is known of a store that a user has written. */
function hidden(name: string): Promise<DoctorCheck> {
  const because = `the ${name} store does not say how it keeps what it has granted`;
  return checkOf({ id: 'durability', name: 'what a crash can lose', touches: ['G2'], unseen: { purpose: 'correctness', because } }, () => ({
    state: 'unknown',
    seen: 'this store has no checks of its own',
    advice: 'Read what its database promises for a commit that was answered.',
  }));
}
