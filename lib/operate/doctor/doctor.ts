import { randomUUID } from 'node:crypto';
import { checkOptions, type Checks } from '../../core/model/check-options.js';
import type { DoctorCheck, DoctorOptions, DoctorReport, DoctorVerdict, Purpose } from '../../core/model/doctor-report.js';
import type { StoreError } from '../../core/model/errors.js';
import type { LockStore } from '../../core/store/lock-store.js';
import { checkStore } from '../../core/store/store-check.js';
import { unknownDurability } from '../../core/store/store-doctor.js';
import { dateOf, now } from '../../core/util/clock.js';
import { tryLock } from './probe.js';

const PROBE = 3000;
/** A lease is renewed three times within its length, and a renewal that fails is repeated. */
const KEY_TIMEOUT_PER_REQUEST = 10;
const SHORTEST_KEY_TIMEOUT = 1000;
const CHECKS: Checks = {
  probe: (value) =>
    value === false || (Number.isSafeInteger(value) && (value as number) >= 1) ? undefined : 'milliseconds, from 1 on, or false',
};

/** The verdicts by their word for correctness. They use the words of docs/guarantees.md. */
const VERDICTS = {
  no: (why: string) => `Efficiency: no, because ${why}. Correctness: no.`,
  unknown: (why: string) => `Efficiency: unknown, because ${why}. Correctness: unknown, for the same reason.`,
  token: (why: string) => `Efficiency: yes. Correctness: only with the fencing token checked at the resource, because ${why}.`,
  yes: () => 'Efficiency: yes. Correctness: yes, and check the fencing token if you can.',
} as const;

/**
 * Makes the checks of the store itself, and tries a lock.
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
    doctor?.checks(namespace) ?? unknownDurability(),
    checkStore(store, namespace, store.requestTimeout).then(
      () => undefined,
      (error: StoreError) => error,
    ),
  ]);
  // A server that refuses locks may still say why.
  if (refusal && own.every(({ state }) => state === 'unknown')) throw refusal;
  const key = `${namespace}nestjs-distributed-lock:doctor:${randomUUID()}`;
  const tried = within === false ? undefined : await tryLock(mutex, key, [newOwner(), newOwner()], within);
  const checks = [...own, ...(tried?.checks ?? [])];
  const least = tried && Math.max(SHORTEST_KEY_TIMEOUT, Math.ceil((KEY_TIMEOUT_PER_REQUEST * tried.slowest) / 100) * 100);
  return { at, store: name, checks, leastKeyTimeout: least ?? null, verdict: verdictOf(checks) };
}

/** Concludes from the checks together. What is unknown limits, too. */
function verdictOf(checks: readonly DoctorCheck[]): DoctorVerdict {
  const limiting = (purpose: Purpose): DoctorCheck[] => checks.filter(({ limits }) => limits?.purpose === purpose);
  const [unfit, weak] = [limiting('efficiency'), limiting('correctness')];
  const known = unfit.filter(({ state }) => state !== 'unknown');
  const correctness = known.length > 0 ? 'no' : unfit.length > 0 ? 'unknown' : weak.length > 0 ? 'token' : 'yes';
  const efficiency = unfit.length === 0 ? 'yes' : known.length > 0 ? 'no' : 'unknown';
  const limited = { no: known, unknown: unfit, token: weak, yes: [] }[correctness];
  const reasons = limited.map(({ id, limits }) => `${limits!.because} (${id})`);
  const why = [reasons.slice(0, -1).join(', '), ...reasons.slice(-1)].filter((part) => part !== '').join(' and ');
  return { efficiency, correctness, text: VERDICTS[correctness](why) };
}
