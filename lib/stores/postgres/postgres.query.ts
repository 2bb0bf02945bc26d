import { configError, messageOf, StoreError } from '../../core/model/errors.js';
import { StoreWarnings } from '../../core/store/store-warnings.js';
import { idle, inTime } from '../../core/util/clock.js';
import { detached } from '../../core/util/detached.js';
import type { PostgresConnection, Row } from './postgres.connection.js';
import { late, unsent } from './postgres.errors.js';

/** Raw SQL of an ORM. It resolves to the rows, to `{ rows }`, or to the rows and their number (TypeORM). */
export type PostgresQuery = (text: string, values: unknown[]) => Promise<unknown>;

/** Most statements without an answer, which may wait at the server without an end. */
const MOST_UNANSWERED = 4;
/** Milliseconds until one is forgotten: the query may never settle. */
const FORGOTTEN = 60_000;
/** The outcome of a transaction. */
const STATUS = 'SELECT txid_status($1::bigint) AS status';
const END = 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid::text::bigint = $1::bigint & 4294967295';
const OPEN =
  'Postgres: a connection of "query" has a transaction that was left open, where nobody sees a lock. The connection was ended. Give "url" instead.';

/** Statements by the `query` of an ORM. */
export class QueryConnection implements PostgresConnection {
  private readonly warnings = new StoreWarnings();
  readonly onWarning = this.warnings.on;
  private hasWarned = false;
  private unanswered = 0;

  constructor(
    private readonly query: PostgresQuery,
    private readonly requestTimeout: number,
  ) {}

  async ask(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const rows = await this.run(text, values);
    const xid = rows[0]?.['xid'] ?? null;
    if (xid !== null) await this.confirm(xid);
    return rows;
  }

  async close(): Promise<void> {}

  /** Outside of every AsyncLocalStorage: there an ORM finds the transaction of the caller, in which nobody else would see the lock. */
  private async run(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const { requestTimeout } = this;
    if (this.unanswered >= MOST_UNANSWERED)
      throw unsent(new StoreError(`Postgres: ${this.unanswered} statements wait for an answer.`, { transient: true }));
    const asked = Promise.resolve(detached(() => this.query(text, [...values])));
    const tooLate = (): StoreError => {
      this.unanswered++;
      const answered = (): unknown => this.unanswered--;
      Promise.race([asked, idle(FORGOTTEN)]).then(answered, answered);
      return late(requestTimeout);
    };
    return rowsIn(await inTime(requestTimeout, asked, tooLate));
  }

  /** An app may release a connection to its pool with a transaction that is open. Other connections do not see what is written there, and wait for it. */
  private async confirm(xid: unknown): Promise<void> {
    const [row] = await this.run(STATUS, [xid]).catch((cause: unknown) => {
      // The change was sent.
      throw new StoreError(messageOf(cause), { transient: true, cause });
    });
    if (row?.['status'] === 'committed') return;
    if (!this.hasWarned) this.warnings.warn(OPEN, 'NDL_OPEN_TRANSACTION');
    this.hasWarned = true;
    // This may be sent over that connection itself, which then breaks.
    await this.run(END, [xid]).catch(() => undefined);
    throw new StoreError(OPEN, { transient: true });
  }
}

/** The rows in any of the forms in which a query may give them. @throws {LockConfigError} if it is another one. */
export function rowsIn(result: unknown): readonly Row[] {
  const rows: unknown = Array.isArray(result) ? result : (Object(result) as { rows?: unknown }).rows;
  if (!Array.isArray(rows))
    throw configError('STORE', 'postgresStore: "query" must resolve to the rows, or to an object that has them as "rows".');
  return (Array.isArray(rows[0]) ? rows[0] : rows) as Row[];
}
