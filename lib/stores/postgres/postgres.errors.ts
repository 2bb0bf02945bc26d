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
  '42501': 'Grant SELECT, INSERT, UPDATE and DELETE on the table to this role, and USAGE, or CREATE to make the table, on its schema.',
};
/** Data that the database cannot have, such as a character that its encoding does not know. */
const WRONG_DATA = /^22/;
/** Errors of the client that another try does not mend. Their texts are whole phrases: an ORM puts its statement, with the name of the table, before. */
const REFUSED = new RegExp(
  [
    'SASL: |support SSL|an SSL connection|SSL routines|after calling end|Cannot find (module|package)',
    "(signed|first|issuer|peer|root|leaf) certificate|certificate('s altnames| has expired| is not| revoked| rejected| not trusted| signature)",
  ].join('|'),
  'i',
);

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

/** Whether one change of a batch may be the reason: the others must not fail because of it. */
export function isOfOne(error: unknown): boolean {
  return isConflict(error) || WRONG_DATA.test(sqlStateOf(error) ?? '');
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
