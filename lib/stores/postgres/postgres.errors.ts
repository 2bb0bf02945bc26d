import { LockError, messageOf, StoreError } from '../../core/model/errors.js';

/** Another change was faster, and ours was not made: serialization failure, deadlock, lock timeout, duplicate key. */
const CONFLICTS: readonly unknown[] = ['40001', '40P01', '55P03', '23505'];
/**
 * Errors that no retry changes: not supported, no role, wrong data, a constraint, a refused log-in, no such database or schema, syntax, no right, no such
 * thing, too large, raised by a trigger. All else passes: a pooler has codes of its own for a server that is away, as XX000 and 58000.
 */
const FINAL = /^(?!23505|42P05)(0[ALP]|2[1-38BF]|3[89BDF]|4[24]|54|F0|P0)/;
/** The server stops, its connections break, or another change was faster: it refuses nothing. */
const UNREFUSED = /^(08|57|40|55P03|23505|25P02)/;
/** Advice about a refusal, by its SQLSTATE. */
const ADVICE: Readonly<Record<string, string>> = {
  '25006': 'Use the address of the primary, or set default_transaction_read_only = off for this role.',
  '42501': 'Grant SELECT, INSERT, UPDATE and DELETE on the table to this role.',
};
/** Errors of the client that another try does not mend. */
const REFUSED = /SASL|SSL|certificate|after calling end|Cannot find (module|package)/i;

/** The SQLSTATE of an error, also where an ORM has wrapped it. */
export function sqlStateOf(error: unknown): string | undefined {
  for (let each = error, depth = 0; typeof each === 'object' && each !== null && depth < 6; depth++) {
    const { meta, driverAdapterError, driverError, original, cause, originalCode, code = originalCode } = each as Record<string, unknown>;
    const inner = meta ?? driverAdapterError ?? driverError ?? original ?? cause;
    // Codes of Node have no digit; those of Prisma begin with P1 to P6.
    if (typeof code === 'string' && /^(?=.*\d)(?!P[1-9])[0-9A-Z]{5}$/.test(code)) return code;
    each = inner;
  }
  return undefined;
}

export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(sqlStateOf(error));
}

/** Makes a {@link StoreError}. An error of the server is final if its SQLSTATE says so; a broken connection passes. */
export function storeErrorOf(cause: unknown): LockError {
  if (cause instanceof LockError) return cause;
  const state = sqlStateOf(cause);
  const text = messageOf(cause);
  const isFinal = state === undefined ? REFUSED.test(text) || cause instanceof TypeError : FINAL.test(state);
  const isRefusal = state !== undefined && !UNREFUSED.test(state);
  const advice = ADVICE[state ?? ''];
  return new StoreError(`Postgres: ${advice === undefined ? text : `${text}. ${advice}`}`, { transient: !isFinal, isRefusal, cause });
}

/** Makes the error of a request that was not sent. */
export function unsent(cause: unknown): LockError {
  const error = storeErrorOf(cause);
  if (!(error instanceof StoreError)) return error;
  const { message, transient, isRefusal } = error;
  return new StoreError(message, { transient, isUnsent: true, isRefusal, cause });
}

export function late(requestTimeout: number): StoreError {
  return new StoreError(`Postgres did not answer within ${requestTimeout} ms.`, { transient: true });
}
