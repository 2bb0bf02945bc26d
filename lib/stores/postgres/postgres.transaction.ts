import { createHash } from 'node:crypto';
import { type Checks, checkOptions, integerFrom, ofType, oneOf } from '../../core/model/check-options.js';
import { LockConfigError, type LockError, StoreError, timedOut } from '../../core/model/errors.js';
import { checkKey } from '../../core/model/key.js';
import { now } from '../../core/util/clock.js';
import { sqlStateOf, storeErrorOf } from './postgres.errors.js';
import { type PostgresQuery, rowsOf } from './postgres.query.js';

/** Options of {@link lockInTransaction} and {@link tryLockInTransaction}. */
export interface TransactionLockOptions {
  /** Whether others that ask for a shared lock may have it at the same time. Default false. */
  shared?: boolean;
  /** Put before the key. Default none. */
  namespace?: string;
}

const CHECKS: Checks = { shared: oneOf(true, false), namespace: ofType('string') };
const LONGEST = 2 ** 31 - 1;
const LOCK_TIMEOUT = '55P03';
const NO_TRANSACTION = '25P01';
const SAVEPOINT = 'distributed_lock';

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
  const { waitTimeout, shared, namespace } = options;
  const start = now();
  const name = nameOf(key, namespace);
  if (waitTimeout === 0) {
    if (await take(query, key, `SELECT ${call('pg_try_advisory_xact_lock', shared)} AS is_taken`, [name])) return;
  } else if (waitTimeout === undefined) {
    if (await take(query, key, `SELECT ${call('pg_advisory_xact_lock', shared)}::text, true AS is_taken`, [name])) return;
  } else {
    // The old value is read before the first row is made, and set again when the lock is taken.
    const text = `WITH old AS MATERIALIZED (SELECT current_setting('lock_timeout') AS value)
      SELECT set_config('lock_timeout', $2::text, true), ${call('pg_advisory_xact_lock', shared)}::text, set_config('lock_timeout', value, true),
        true AS is_taken FROM old`;
    if (await take(query, key, text, [name, `${waitTimeout}ms`])) return;
  }
  throw timedOut(key, now() - start);
}

/**
 * {@link lockInTransaction} without a wait.
 *
 * @returns false: another transaction has it.
 * @throws {LockConfigError} when an option is wrong, or there is no transaction.
 * @throws {StoreError} when the server fails; then the transaction has failed, too.
 */
export async function tryLockInTransaction(query: PostgresQuery, key: string, options: TransactionLockOptions = {}): Promise<boolean> {
  checkOptions(options, 'tryLockInTransaction', CHECKS);
  const { shared, namespace } = options;
  return take(query, key, `SELECT ${call('pg_try_advisory_xact_lock', shared)} AS is_taken`, [nameOf(key, namespace)]);
}

/**
 * Locks have numbers: two keys of one number exclude each other, which happens to one pair of 2⁶⁴.
 */
function nameOf(key: string, namespace = ''): string {
  return createHash('sha256')
    .update(checkKey(namespace + checkKey(key)))
    .digest()
    .readBigInt64BE()
    .toString();
}

function call(name: string, shared = false): string {
  return `${name}${shared ? '_shared' : ''}($1::bigint)`;
}

/** Within a savepoint: there is none without a transaction, and what is waited for too long does not fail the transaction. */
async function take(query: PostgresQuery, key: string, text: string, values: unknown[]): Promise<boolean> {
  try {
    await query(`SAVEPOINT ${SAVEPOINT}`, []);
    const isTaken = await query(text, values).then(
      (result) => rowsOf(result)[0]?.['is_taken'] === true,
      async (cause: unknown) => {
        if (sqlStateOf(cause) !== LOCK_TIMEOUT) throw cause;
        await query(`ROLLBACK TO SAVEPOINT ${SAVEPOINT}`, []);
        return false;
      },
    );
    await query(`RELEASE SAVEPOINT ${SAVEPOINT}`, []);
    return isTaken;
  } catch (cause) {
    throw errorOf(cause, key);
  }
}

function errorOf(cause: unknown, key: string): LockError {
  if (sqlStateOf(cause) === NO_TRANSACTION) {
    const message = `There is no transaction that could hold "${key}": pass a query that runs inside of one.`;
    return new LockConfigError(message, { key, cause });
  }
  const error = storeErrorOf(cause);
  return error instanceof StoreError ? new StoreError(error.message, { key, cause, transient: error.transient }) : error;
}
