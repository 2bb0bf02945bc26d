import { configError, StoreError } from '../../core/model/errors.js';
import type { StoreDoctor } from '../../core/store/store-doctor.js';
import { awake as now, HOUR } from '../../core/util/clock.js';
import { inParts } from '../../core/util/in-parts.js';
import { RecordClock } from '../records/record.clock.js';
import { RecordSweep, type Change, type Found, type RecordTable } from '../records/record.table.js';
import type { Changed, MysqlClient, Row } from './mysql.client.js';
import { isConflict } from './mysql.errors.js';
import { MysqlStep, type Stored } from './mysql.step.js';

export const DEFAULT_TABLE = 'distributed_lock';

/** The server's clock in milliseconds. UNIX_TIMESTAMP repeats an hour when the session's zone leaves summer time. */
const CLOCK = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000)";
const PAGE = 1000;
/** Bytes of records in one statement: a server takes 16 MB, written in hexadecimal. */
const LARGEST = 2 ** 20;

/**
 * Records in a table of MySQL or MariaDB. Each statement is a transaction of its own, so that no lock is held over the network. There is no
 * `UPDATE … RETURNING`: the version is ours, and the fence comes as the last insert id.
 */
export class MysqlTable implements RecordTable {
  readonly name = 'mysql';
  readonly doctor: StoreDoctor = {
    checks: async () => (await import('./operate/mysql.doctor.js')).mysqlChecks(this.client, this.table),
  };
  private readonly clock = new RecordClock();
  private readonly sweeps = new RecordSweep(() => this.sweep());

  /** @param table its quoted name. */
  constructor(
    private readonly client: MysqlClient,
    private readonly table: string,
  ) {}

  get requestTimeout(): number {
    return this.client.requestTimeout;
  }

  exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    this.sweeps.ifDue();
    const steps = changes.map((change) => new MysqlStep(change));
    const reads = steps.filter(({ isRead }) => isRead);
    void this.settle(reads, (all) => this.read(all));
    const changed = steps.filter(({ isRead }) => !isRead);
    for (const some of inParts(changed, [LARGEST], ({ record }) => [record?.length ?? 0])) void this.settle(some, (all) => this.write(all));
    return steps.map(({ found }) => found);
  }

  async *keys(prefix: string): AsyncGenerator<string[]> {
    const start = Buffer.from(prefix);
    for (let last: Buffer | undefined; ;) {
      const sql = `SELECT id FROM ${this.table} WHERE id ${last ? '>' : '>='} ? ORDER BY id LIMIT ${PAGE}`;
      const ids = (await this.client.run<Row[]>(sql, [last ?? start])).map(([id]) => id as Buffer);
      const mine = ids.filter((id) => id.subarray(0, start.length).equals(start));
      yield mine.map(String);
      last = mine.at(-1);
      if (!last || mine.length < PAGE) return;
    }
  }

  close(): Promise<void> {
    return this.client.close();
  }

  /** The time by which a change that is sent now is not waited for any more. Later by the server's clock means that it was set forward, and the change would end early. */
  private get notAfter(): number {
    return this.clock.isKnown ? this.clock.time.late + this.requestTimeout : Number.MAX_SAFE_INTEGER;
  }

  /** Deletes all rows that ended so many milliseconds ago: a page at a time, and by their ids, since a search would lock what it reads. */
  async sweep(endedFor = HOUR): Promise<void> {
    const hasEnded = `ends_at < ${CLOCK} - ?`;
    for (let count = PAGE; count === PAGE;) {
      const rows = await this.client.run<Row[]>(`SELECT id FROM ${this.table} WHERE ${hasEnded} LIMIT ${PAGE}`, [endedFor]);
      const ids = rows.map(([id]) => id);
      if (ids.length > 0)
        await this.client.run(`DELETE t FROM ${this.table} t FORCE INDEX (PRIMARY) WHERE id IN (?) AND ${hasEnded}`, [ids, endedFor]);
      count = ids.length;
    }
  }

  private async settle(steps: readonly MysqlStep[], work: (steps: readonly MysqlStep[]) => Promise<void>): Promise<void> {
    if (steps.length === 0) return;
    try {
      await work(steps);
    } catch (error) {
      for (const { reject } of steps) reject(error);
    }
  }

  private async read(steps: readonly MysqlStep[]): Promise<void> {
    for (const step of steps) if (step.isTouch) await this.touch(step);
    const { rows, time } = await this.find(steps);
    for (const step of steps) step.notMade(rows.get(step.change.key), time);
  }

  /** A deadlock means that somebody else has changed the row. */
  private async touch({ id, version }: MysqlStep): Promise<void> {
    const done = this.client.run<Changed>(`UPDATE ${this.table} SET version = ? WHERE id = ?`, [version, id]);
    await done.catch((error: unknown) => {
      if (!isConflict(error)) throw error;
    });
  }

  /**
   * Updates all, finds out which were made, inserts the rows that are not there, and finds out which of these were made.
   *
   * | the row of a change | update | insert | the change was |
   * |---|---|---|---|
   * | has the expected version, or has ended where that was expected | changes it | – | made |
   * | has another version | no | – | not made |
   * | is not there, as expected | no | makes it | made |
   * | is not there, as expected, and another process is faster | no | ignored | not made |
   * | is not there, and a version was expected | no | – | not made |
   *
   * A statement that lost against another one has changed nothing: {@link unlessConflict}.
   */
  private async write(steps: readonly MysqlStep[]): Promise<void> {
    const { notAfter } = this;
    const changed = await this.unlessConflict(steps, this.update(steps, notAfter));
    if (!changed) return;
    const [only] = steps;
    if (changed.affectedRows > 0 && steps.length === 1) return only!.made(Number(changed.insertId));
    const { rest, time, rows } = await this.sort(steps, changed.affectedRows);
    const isNew = ({ expected, change }: MysqlStep): boolean =>
      expected === 0 && !rows.has(change.key) && change.notBefore <= time && time <= notAfter;
    for (const step of rest) if (!isNew(step)) step.notMade(rows.get(step.change.key), time);
    const fresh = rest.filter(isNew);
    if (fresh.length === 0) return;
    const made = await this.unlessConflict(fresh, this.insert(fresh));
    if (made?.affectedRows === fresh.length) return fresh.forEach((step) => step.made(step.firstFence, time));
    if (!made) return;
    const late = await this.sort(fresh, made.affectedRows);
    for (const step of late.rest) step.notMade(late.rows.get(step.change.key), late.time);
  }

  /** Resolves the changes that were made: their rows have their versions, unless another process has changed them since. */
  private async sort(steps: readonly MysqlStep[], count: number) {
    const { rows, time } = await this.find(steps).catch((error: unknown) => {
      // Changes have been made before it.
      if (count > 0 && error instanceof StoreError && error.isUnsent)
        throw new StoreError(error.message, { transient: error.transient, cause: error });
      throw error;
    });
    const rest: MysqlStep[] = [];
    for (const step of steps) {
      const row = rows.get(step.change.key);
      if (row?.version === step.version) step.made(row.fence, time);
      else rest.push(step);
    }
    if (steps.length - rest.length < count) {
      throw new StoreError('MySQL: others have changed the same keys meanwhile, so that it is unknown which of our changes were made.', {
        transient: true,
      });
    }
    return { rows, time, rest };
  }

  /** A statement that lost against another one has changed nothing. Each of several changes is then tried by itself. */
  private async unlessConflict<T>(steps: readonly MysqlStep[], work: Promise<T>): Promise<T | undefined> {
    try {
      return await work;
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (steps.length === 1) await this.read(steps);
      else for (const step of steps) await this.settle([step], (one) => this.write(one));
      return undefined;
    }
  }

  private update(steps: readonly MysqlStep[], notAfter: number): Promise<Changed> {
    const { table } = this;
    if (steps.length === 1) {
      return this.client.run<Changed>(
        `UPDATE ${table} SET version = ?, record = ?, ends_at = ?, fence = LAST_INSERT_ID(GREATEST(fence + ?, ?))
         WHERE id = ? AND ? IN (version, IF(ends_at <= ${CLOCK}, 0, NULL)) AND ${CLOCK} BETWEEN ? AND ?`,
        [...steps[0]!.values, notAfter],
      );
    }
    const names = ['version', 'record', 'ends_at', 'tokens', 'fence', 'id', 'expected', 'not_before'];
    const first = `SELECT ${names.map((name) => `? AS ${name}`).join(', ')}`;
    const other = ` UNION ALL SELECT ${names.map(() => '?').join(', ')}`;
    // In the order of their ids, so that two statements do not wait for each other.
    const sorted = [...steps].sort((a, b) => Buffer.compare(a.id, b.id));
    return this.client.run<Changed>(
      `UPDATE (${first}${other.repeat(sorted.length - 1)}) c STRAIGHT_JOIN ${table} t ON t.id = c.id
       SET t.version = c.version, t.record = c.record, t.ends_at = c.ends_at, t.fence = GREATEST(t.fence + c.tokens, c.fence)
       WHERE c.expected IN (t.version, IF(t.ends_at <= ${CLOCK}, 0, NULL)) AND ${CLOCK} BETWEEN c.not_before AND ?`,
      [...sorted.flatMap(({ values }) => values), notAfter],
    );
  }

  /** Only where no row is. ON DUPLICATE KEY would lock the gaps between the rows. */
  private insert(steps: readonly MysqlStep[]): Promise<Changed> {
    const rows = steps.map((step) => [step.id, step.version, step.record, step.endsAt, step.firstFence]);
    return this.client.run<Changed>(`INSERT IGNORE INTO ${this.table} (id, version, record, ends_at, fence) VALUES ?`, [rows]);
  }

  /** The rows by their keys. */
  private async find(steps: readonly MysqlStep[]): Promise<{ rows: Map<string, Stored>; time: number }> {
    const sentAt = now();
    const found = await this.client.run<Row[]>(
      `SELECT c.time, t.id, t.version, t.fence, IF(t.ends_at > c.time, CAST(t.record AS BINARY), NULL)
       FROM (SELECT ${CLOCK} AS time) c LEFT JOIN ${this.table} t ON t.id IN (?)`,
      [steps.map(({ id }) => id)],
    );
    const rows = new Map<string, Stored>();
    for (const [, id, version, fence, record] of found as (Buffer | null)[][]) {
      if (id === null) continue;
      rows.set(String(id), { version: Number(version), fence: Number(fence), record: record === null ? null : String(record) });
    }
    const time = Number(found[0]?.[0]);
    this.clock.learn(time, sentAt);
    return { rows, time };
  }
}

/** The `CREATE TABLE` statement for a migration. It changes nothing where the table is. */
export function mysqlSchema({ table = DEFAULT_TABLE }: { table?: string } = {}): string {
  return `CREATE TABLE IF NOT EXISTS ${quoted(table)} (
  id      varbinary(2048) NOT NULL PRIMARY KEY,
  version bigint NOT NULL,
  record  mediumtext CHARACTER SET utf8mb4,
  ends_at bigint NOT NULL,
  fence   bigint NOT NULL
) ENGINE = InnoDB`;
}

/** @throws {LockConfigError} if it is no name of a table, with or without its database. */
export function quoted(table: string): string {
  if (!/^[\w$]{1,64}(\.[\w$]{1,64})?$/.test(table)) {
    throw configError('OPTION', 'mysqlStore: "table" must be the name of a table, of letters, digits, _ and $.');
  }
  return table
    .split('.')
    .map((part) => `\`${part}\``)
    .join('.');
}
