import { randomUUID } from 'node:crypto';
import { checkOptions, type Checks } from '../../core/model/check-options.js';
import type { DoctorCheck, DoctorOptions, DoctorReport, DoctorVerdict, Purpose } from '../../core/model/doctor-report.js';
import type { StoreError } from '../../core/model/errors.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { checkStore } from '../../core/store/store-check.js';
import { checkOf } from '../../core/store/store-doctor.js';
import { dateOf, now } from '../../core/util/clock.js';
import { Probe } from './probe.js';

const PROBE = 3000;
/** A lease is renewed three times within its length, and a renewal that fails is repeated. */
const KEY_TIMEOUT_PER_REQUEST = 10;
const SHORTEST_KEY_TIMEOUT = 1000;
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
  const { doctor, mutex, name } = store;
  const at = new Date(dateOf(now()));
  const [own, refusal] = await Promise.all([
    doctor?.checks(namespace) ?? hidden(name).then((check) => [check]),
    checkStore(store, namespace, store.requestTimeout).then(
      () => undefined,
      (error: StoreError) => error,
    ),
  ]);
  // A server that refuses locks may still say why.
  if (refusal && own.every(({ state }) => state === 'unknown')) throw refusal;
  const key = `${namespace}nestjs-distributed-lock:doctor:${randomUUID()}`;
  const probe = within === false ? undefined : new Probe(mutex, key, [newOwner(), newOwner()], within);
  const checks = [...own, ...((await probe?.checks()) ?? [])];
  const slowest = probe?.slowest;
  const leastKeyTimeout =
    slowest === undefined ? null : Math.max(SHORTEST_KEY_TIMEOUT, Math.ceil((KEY_TIMEOUT_PER_REQUEST * slowest) / 100) * 100);
  const rights = await doctor?.rights?.(namespace);
  return { at, store: name, checks, leastKeyTimeout, verdict: verdictOf(checks), ...(rights !== undefined && { rights }) };
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

/** What the checks say together, in the words of docs/guarantees.md. */
function verdictOf(checks: readonly DoctorCheck[]): DoctorVerdict {
  const of = (purpose: Purpose, isKnown: boolean): DoctorCheck[] =>
    checks.filter(({ limits, state }) => limits?.purpose === purpose && (state !== 'unknown') === isKnown);
  const [never, perhaps] = [of('efficiency', true), of('efficiency', false)];
  if (never.length > 0) {
    const text = `Efficiency: no, because ${reasonsOf(never)}. Correctness: no.`;
    return { efficiency: 'no', correctness: 'no', text };
  }
  const weak = [...of('correctness', true), ...of('correctness', false)];
  const efficiency = perhaps.length > 0 ? 'unknown' : 'yes';
  const first = perhaps.length > 0 ? `Efficiency: unknown, because ${reasonsOf(perhaps)}.` : 'Efficiency: yes.';
  if (weak.length > 0) {
    const text = `${first} Correctness: only with the fencing token checked at the resource, because ${reasonsOf(weak)}.`;
    return { efficiency, correctness: efficiency === 'yes' ? 'token' : 'unknown', text };
  }
  if (efficiency === 'unknown') return { efficiency, correctness: 'unknown', text: `${first} Correctness: unknown, for the same reason.` };
  return { efficiency, correctness: 'yes', text: `${first} Correctness: yes, and check the fencing token if you can.` };
}

function reasonsOf(checks: readonly DoctorCheck[]): string {
  const reasons = checks.map(({ id, limits }) => `${limits!.because} (${id})`);
  return [reasons.slice(0, -1).join(', '), ...reasons.slice(-1)].filter((part) => part !== '').join(' and ');
}
