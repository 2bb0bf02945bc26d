import { createHash, randomBytes } from 'node:crypto';
import { type Checks, checkOptions, integerFrom, ofType, oneOf } from '../../core/model/check-options.js';
import { asStoreError, configError, timedOut } from '../../core/model/errors.js';
import { checkKey } from '../../core/model/key.js';
import { now } from '../../core/util/clock.js';
import { storeErrorOf } from './postgres.errors.js';
import { type PostgresQuery, rowsIn } from './postgres.query.js';

/** Options of {@link lockInTransaction} and {@link tryLockInTransaction}. */
export interface TransactionLockOptions {
  /** Whether others that ask for a shared lock may have it at the same time. Default false. */
  shared?: boolean;
  /** Put before the key. Default none. */
  namespace?: string;
}

const CHECKS: Checks = { shared: oneOf(true, false), namespace: ofType('string') };
const LONGEST = 2 ** 31 - 1;
/** A setting of the transaction: the outcome of each call. */
const OUTCOMES = 'distributed_lock.outcomes';

/**
 * Waits for a lock that the transaction holds until its end: commit and rollback release it together with the data. It has no lease and no token, needs no
 * table, and is not the same lock as `locks.mutex(key)`.
 *
 * @param query runs a statement in the transaction, such as `(text, values) => client.query(text, values)`.
 * @param options.waitTimeout milliseconds; 0: one try. Default: as long as the `lock_timeout` of the session allows, which is without end by default.
 * @throws {LockTimeoutError} when another transaction has it all the time. The transaction can go on.
 * @throws {LockConfigError} when an option is wrong, or there is no transaction.
 * @throws {StoreError} when the server fails; then the transaction has failed, too.
 */
export async function lockInTransaction(
  query: PostgresQuery,
  key: string,
  options: TransactionLockOptions & { waitTimeout?: number } = {},
): Promise<void> {
  checkOptions(options, 'lockInTransaction', { ...CHECKS, waitTimeout: integerFrom(0, LONGEST) });
  const { waitTimeout } = options;
  const start = now();
  if (!(await take(query, key, options, waitTimeout))) throw timedOut(key, now() - start);
}

/**
 * {@link lockInTransaction} without a wait, and with its other errors.
 *
 * @returns false: another transaction has it.
 */
export async function tryLockInTransaction(query: PostgresQuery, key: string, options: TransactionLockOptions = {}): Promise<boolean> {
  checkOptions(options, 'tryLockInTransaction', CHECKS);
  return take(query, key, options, 0);
}

/** A lock is a number: two keys of one number exclude each other, which happens to one pair of 2⁶⁴. */
function numberOf(key: string, namespace = ''): string {
  return createHash('sha256')
    .update(checkKey(namespace + checkKey(key)))
    .digest()
    .readBigInt64BE()
    .toString();
}

/**
 * Takes it in one statement, which undoes only itself when the wait is over: a savepoint of ours would undo what others do in the transaction meanwhile.
 * Its outcome is a setting of the transaction, so there is none without a transaction.
 */
async function take(query: PostgresQuery, key: string, options: TransactionLockOptions, waitTimeout: number | undefined): Promise<boolean> {
  const call = randomBytes(6).toString('hex');
  const lock = `advisory_xact_lock${options.shared ? '_shared' : ''}('${numberOf(key, options.namespace)}'::bigint)`;
  const wait = `PERFORM pg_${lock}; outcome := true`;
  const limit = `PERFORM set_config('lock_timeout', '${waitTimeout}ms', true); ${wait}; PERFORM set_config('lock_timeout', before, true)`;
  const body = waitTimeout === 0 ? `outcome := pg_try_${lock}` : waitTimeout === undefined ? wait : limit;
  const text = `DO $$ DECLARE outcome boolean := false; before text := current_setting('lock_timeout'); BEGIN
    BEGIN ${body}; EXCEPTION WHEN lock_not_available THEN NULL; END;
    PERFORM set_config('${OUTCOMES}', concat(current_setting('${OUTCOMES}', true), '${call}=', outcome, ' '), true); END $$`;
  try {
    await query(text, []);
    const rows = rowsIn(await query(`SELECT substring(current_setting('${OUTCOMES}', true) FROM $1) AS outcome`, [`${call}=(.)`]));
    const outcome = rows[0]?.['outcome'];
    if (typeof outcome === 'string') return outcome === 't';
  } catch (cause) {
    throw asStoreError(storeErrorOf(cause), key);
  }
  throw configError('CALL', `There is no transaction that could hold "${key}": pass a query that runs inside of one.`, { key });
}
