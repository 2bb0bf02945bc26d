import { configError, type LockConfigError } from '../core/model/errors.js';

/**
 * Runs one statement in the caller's transaction and resolves to its rows. The helpers (`pg`, `typeorm`, …) make one. Placeholders are `$1`, `$2`, … for
 * Postgres and `?` for the others; each occurs once and in order.
 */
export interface Run {
  (sql: string, params: readonly string[]): Promise<readonly object[]>;
  /** Whether the transaction is still open. Without it, a release before the commit goes unnoticed. */
  isOpen?(): boolean;
}

/** A run of what sends a statement and resolves to rows, `{ rows }`, or `[rows, …]`. */
export function queriesBy(send: (sql: string, params: string[]) => unknown, isOpen?: () => boolean): Run {
  const run: Run = async (sql, params) => rowsOf(await send(sql, [...params]));
  return isOpen ? Object.assign(run, { isOpen }) : run;
}

/** The rows in what a client resolves to. */
export function rowsOf(result: unknown): readonly object[] {
  const rows: unknown = typeof result === 'object' && result !== null && 'rows' in result ? result.rows : result;
  if (!Array.isArray(rows)) return [];
  return (Array.isArray(rows[0]) ? rows[0] : rows) as object[];
}

/** The statement with a `?` in place of each placeholder. */
export function withQuestionMarks(sql: string): string {
  return sql.split(PLACEHOLDER).join('?');
}

/** The statement as the tag of a template takes it: `` sql`… ${param} …` ``. */
export function asTemplate(sql: string): TemplateStringsArray {
  const parts = sql.split(PLACEHOLDER);
  return Object.assign(parts, { raw: parts });
}

const PLACEHOLDER = /\$\d+|\?/;

/** The error of a helper that got something else than an open transaction. */
export function refused(helper: string, what: string): LockConfigError {
  return configError('FENCE', `The fence guard got ${what} by ${helper}(…): it works in the transaction that it guards, and nowhere else.`);
}
