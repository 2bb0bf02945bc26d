import { VOID, type Change, type Found, type RecordTable } from 'nestjs-distributed-lock/records';
import type { Database } from 'sql.js';

// #region record-table
const CLOCK = "(julianday('now') - 2440587.5) * 86400000"; // the database's clock, in ms since 1970
const LOOK = `SELECT version, fence, ${CLOCK} AS time, CASE WHEN ends_at > ${CLOCK} THEN record END AS record`;

export class SqliteTable implements RecordTable {
  readonly name = 'sqlite'; // for messages
  readonly requestTimeout = 1000;

  constructor(private readonly db: Database) {
    const columns = 'key TEXT PRIMARY KEY, version TEXT NOT NULL, record TEXT, ends_at REAL NOT NULL, fence INTEGER NOT NULL';
    db.run(`CREATE TABLE IF NOT EXISTS lock_record (${columns})`);
  }

  exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    return changes.map(async (change) => this.one(change));
  }

  async close(): Promise<void> {}

  private one({ key, expected, record, endsAt, notBefore, tokens, fence }: Change): Found {
    if (expected !== undefined) {
      const values = { $key: key, $version: crypto.randomUUID(), $record: record, $endsAt: endsAt, $tokens: tokens, $fence: fence };
      const set = `SET version = $version, record = $record, ends_at = $endsAt,
        fence = CASE WHEN $tokens > 0 THEN max(fence + $tokens, $fence) ELSE fence END`;
      const done = `RETURNING version, fence, ${CLOCK} AS time`;
      const [made] =
        expected === VOID
          ? this.ask(
              `INSERT INTO lock_record VALUES ($key, $version, $record, $endsAt, CASE WHEN $tokens > 0 THEN max($tokens, $fence) ELSE 0 END)
               ON CONFLICT DO UPDATE ${set} WHERE ends_at <= ${CLOCK} ${done}`,
              values,
            )
          : this.ask(`UPDATE lock_record ${set} WHERE key = $key AND version = $expected AND $notBefore <= ${CLOCK} ${done}`, {
              ...values,
              $expected: expected,
              $notBefore: notBefore,
            });
      if (made) return { ...made, record, written: true };
    }
    const [row] = this.ask(`${LOOK} FROM (SELECT 1) LEFT JOIN lock_record ON key = $key`, { $key: key }) as [Found];
    return { ...row, version: row.version ?? '', fence: row.fence ?? 0, written: false };
  }

  private ask(sql: string, values: Record<string, string | number | null>): Omit<Found, 'written'>[] {
    const statement = this.db.prepare(sql, values);
    const rows: Omit<Found, 'written'>[] = [];
    while (statement.step()) rows.push(statement.getAsObject() as unknown as Found);
    statement.free();
    return rows;
  }
}
// #endregion
