/**
 * Runs one statement in the caller's transaction and resolves to its rows. The helpers (`pg`, `typeorm`, …) make one. Placeholders are `$1`, `$2`, … for
 * Postgres and `?` for the others; each occurs once and in order.
 */
export interface Run {
  (sql: string, params: readonly string[]): Promise<readonly object[]>;
  /** Whether the transaction is still open. Without it, a release before the commit goes unnoticed. */
  isOpen?(): boolean;
}

/** The rows in what a client resolves to: itself, `{ rows }`, or `[rows, …]`. */
export function rowsOf(result: unknown): readonly object[] {
  const rows: unknown = typeof result === 'object' && result !== null && 'rows' in result ? result.rows : result;
  if (!Array.isArray(rows)) return [];
  return (Array.isArray(rows[0]) ? rows[0] : rows) as object[];
}

const PLACEHOLDER = /\$\d+|\?/;

/** The text around the placeholders. */
export function partsOf(sql: string): string[] {
  return sql.split(PLACEHOLDER);
}

/** The statement as the tag of a template takes it: `` sql`… ${param} …` ``. */
export function asTemplate(sql: string): TemplateStringsArray {
  const parts = partsOf(sql);
  return Object.assign(parts, { raw: parts });
}
