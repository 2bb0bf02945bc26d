import { configError, StoreError } from '../../core/model/errors.js';
import type { StoreDoctor } from '../../core/store/store-doctor.js';
import { HOUR } from '../../core/util/clock.js';
import { type Change, type Found, RecordSweep, type RecordTable, TOUCH, VOID } from '../records/record.table.js';
import type { PostgresConnection, Row } from './postgres.connection.js';
import { isConflict, isOfOne, sqlStateOf, storeErrorOf } from './postgres.errors.js';
import type { OpenSource } from './postgres.listener.js';
import type { PostgresStatements } from './postgres.statements.js';
import { PostgresWakeUps } from './postgres.wakeups.js';

const LARGEST_BATCH = 256;
const PAGE = 1000;
const TOO_MUCH = '54000';
const NO_TABLE = '42P01';
/** Somebody else has just created it. */
const EXISTS = ['42P07', '42710', '23505'];
/** Servers that speak its protocol, by what `version()` says. Aurora DSQL names no platform. */
const OTHERS = { CockroachDB: /CockroachDB/, YugabyteDB: /-YB-/, 'Aurora DSQL': /DSQL|^PostgreSQL [\d.]+$/ };
/** The name of the transaction, the same for each of its statements. A SAVEPOINT would show it by an error in the server's log, and some clocks are coarse. */
const TRANSACTION = `SELECT virtualtransaction AS name FROM pg_locks WHERE locktype = 'virtualxid' AND pid = pg_backend_pid()`;

/** A change whose promise is open. */
interface Ask {
  readonly change: Change;
  readonly resolve: (found: Found) => void;
  readonly reject: (error: unknown) => void;
}

/** Records as rows of one table. Each statement is a transaction of its own, so that no lock is ever held across the network. */
export class PostgresTable implements RecordTable {
  readonly name = 'postgres';
  readonly wakeUps: PostgresWakeUps | undefined;
  readonly bus: PostgresWakeUps['bus'] | undefined;
  readonly doctor: StoreDoctor;
  private readonly sweeps = new RecordSweep(() => this.sweep());
  private checked: Promise<void> | undefined;
  private readonly again = (error: unknown): never => {
    this.checked = undefined;
    throw error;
  };
  /** The number of the table that was seen first. */
  private oid: unknown;

  /**
   * @param source opens what listens. `undefined`: waiters poll.
   * @param creates whether a table that is missing is created.
   */
  constructor(
    private readonly connection: PostgresConnection,
    source: OpenSource | undefined,
    private readonly statements: PostgresStatements,
    readonly requestTimeout: number,
    private readonly creates: boolean,
  ) {
    const ask = (text: string, values: readonly unknown[]): Promise<readonly Row[]> => this.ask(text, values);
    if (source) this.wakeUps = new PostgresWakeUps(source, ask, requestTimeout, statements.table);
    this.bus = this.wakeUps?.bus;
    this.doctor = { checks: async () => (await import('./operate/postgres.doctor.js')).postgresChecks(ask, statements, connection) };
  }

  exchange(changes: readonly Change[]): readonly Promise<Found>[] {
    this.sweeps.ifDue();
    const asks: Ask[] = [];
    const found = changes.map((change) => new Promise<Found>((resolve, reject) => asks.push({ change, resolve, reject })));
    for (const group of groupsOf(asks)) void this.serve(group);
    return found;
  }

  get atOnce(): number | undefined {
    return this.connection.atOnce;
  }

  async *keys(prefix: string): AsyncGenerator<readonly string[]> {
    for (let last: string | undefined; ;) {
      const rows = await this.ask(this.statements.page(last === undefined), [last ?? prefix, HOUR, PAGE]);
      const keys = rows.map(({ key }) => String(key)).filter((key) => key.startsWith(prefix));
      if (keys.length > 0) yield keys;
      if (keys.length < PAGE) return;
      last = keys.at(-1);
    }
  }

  onWarning(listener: (message: string) => void): () => void {
    return this.connection.onWarning?.(listener) ?? (() => undefined);
  }

  async close(): Promise<void> {
    this.wakeUps?.close();
    await this.connection.close();
  }

  /** Deletes all rows that ended an hour ago, a page at a time. */
  async sweep(most = PAGE): Promise<void> {
    for (let count = most; count === most;) count = (await this.ask(this.statements.sweep, [HOUR, most])).length;
  }

  /** Sends changes that can go together; see {@link groupsOf}. */
  private async serve(asks: readonly Ask[]): Promise<void> {
    const [first] = asks as [Ask];
    const { expected, isLazy } = first.change;
    try {
      if (expected === undefined) await this.read(asks);
      else if (asks.length === 1) await this.one(first);
      else await this.many(asks, isLazy);
    } catch (cause) {
      // The queue of notifications is full, and nothing was changed. Without messages waiters poll.
      const isFull = sqlStateOf(cause) === TOO_MUCH && asks.some(({ change }) => change.messages.length > 0);
      if (isFull) return this.serve(asks.map((ask) => ({ ...ask, change: { ...ask.change, messages: [] } })));
      for (const { reject } of asks) reject(storeErrorOf(cause));
    }
  }

  private async one(ask: Ask): Promise<void> {
    const { key, expected, messages, isLazy } = ask.change;
    const { statements } = this;
    const manner = { isLazy, notifies: messages.length > 0 };
    const values: unknown[] = [key];
    if (expected !== TOUCH) values.push(...valuesOf(ask.change));
    if (expected !== TOUCH && expected !== VOID) values.push(expected);
    if (manner.notifies) values.push(messagesOf(ask.change));
    const text = expected === TOUCH ? statements.touch : expected === VOID ? statements.create(manner) : statements.swap(manner);
    const [row] = await this.ask(text, values).catch(noneIfConflict);
    const isMade = row !== undefined && expected !== TOUCH && (expected !== VOID || row['written'] === true);
    // A change that was not made may have seen another row than it returns.
    if (!isMade && (row?.['record'] ?? null) === null) return this.read([ask]);
    ask.resolve(foundOf(row!, isMade));
  }

  private async many(asks: readonly Ask[], isLazy: boolean): Promise<void> {
    const of = <T>(value: (change: Change) => T): T[] => asks.map(({ change }) => value(change));
    const manner = { isLazy, notifies: asks.some(({ change }) => change.messages.length > 0) };
    const columns: unknown[][] = [
      of(({ key }) => key),
      ...transposed(of(valuesOf)),
      of(({ expected }) => (expected === VOID ? null : expected)),
    ];
    if (manner.notifies) columns.push(of(messagesOf));
    let rows: readonly Row[];
    try {
      rows = await this.ask(this.statements.many(manner), columns);
    } catch (cause) {
      if (!isOfOne(cause)) throw cause;
      for (const ask of asks) void this.serve([ask]);
      return;
    }
    const left = new Map(asks.map((ask, index) => [index + 1, ask]));
    for (const row of rows) {
      const index = Number(row['i']);
      left.get(index)?.resolve(foundOf(row, true));
      left.delete(index);
    }
    if (left.size > 0) await this.read([...left.values()]);
  }

  private async read(asks: readonly Ask[]): Promise<void> {
    let rows: readonly Row[];
    try {
      rows = await this.ask(this.statements.read, [asks.map(({ change }) => change.key)]);
    } catch (cause) {
      if (asks.length === 1 || !isOfOne(cause)) throw cause;
      for (const ask of asks) this.read([ask]).catch((error: unknown) => ask.reject(storeErrorOf(error)));
      return;
    }
    const byNumber = new Map(rows.map((row) => [Number(row['i']), row]));
    // Without its row, the reply has no time, and is refused.
    for (const [index, { resolve }] of asks.entries()) resolve(foundOf(byNumber.get(index + 1) ?? {}, false));
  }

  /** @throws the error of the server, or a {@link StoreError} that says what to run. */
  private async ask(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    try {
      await (this.checked ??= checkServer(this.connection).catch(this.again));
      const rows = await this.connection.ask(text, values);
      await this.pin(rows[0]?.['oid']);
      return rows;
    } catch (cause) {
      if (sqlStateOf(cause) === NO_TABLE) return this.askAfterCreate(text, values, cause);
      throw cause;
    }
  }

  /** Makes sure that it is always one table: all keys of another one are free. @throws {LockConfigError} if its name leads to a second table. */
  private async pin(oid: unknown): Promise<void> {
    if (oid === undefined || (this.oid ??= oid) === oid) return;
    const { table } = this.statements;
    const name = /([^".]+)"$/.exec(table)![1];
    const asked = this.connection.ask('SELECT 1 AS one FROM pg_class WHERE oid = $1::oid AND relname = $2::text', [this.oid, name]);
    // The statement was sent: an error of this must not say that it was not.
    const [before] = await asked.catch(() => [{}]);
    if (!before) {
      this.oid = oid;
      return;
    }
    const advice = `Name its schema, such as table: 'public.${name}'`;
    throw configError(
      'STORE',
      `postgresStore: the search_path of some connections leads to another table ${table}, with locks of its own. ${advice}.`,
    );
  }

  private async askAfterCreate(text: string, values: readonly unknown[], cause: unknown): Promise<readonly Row[]> {
    const { table, schema } = this.statements;
    const message = `Postgres: the table ${table} is missing. Run the SQL of postgresSchema() once, or set schema: 'create':\n${schema};`;
    if (!this.creates) throw new StoreError(message, { transient: false, isRefusal: true, cause });
    await this.connection.ask(schema, []).catch((error: unknown) => {
      if (!EXISTS.includes(sqlStateOf(error) ?? '')) throw error;
    });
    return this.connection.ask(text, values);
  }
}

/** Changes that can go in one commit. Reads go by themselves, and so do messages of a row that may be new. */
function groupsOf(asks: readonly Ask[]): Ask[][] {
  const groups: Ask[][] = [];
  const open = new Map<string, Ask[]>();
  for (const ask of asks) {
    const { expected, isLazy, messages } = ask.change;
    const isAlone = expected === TOUCH || (expected === VOID && messages.length > 0);
    const sort = expected === undefined ? 'read' : isAlone ? '' : String(isLazy);
    let group = open.get(sort);
    if (!group || sort === '' || group.length >= LARGEST_BATCH) groups.push((group = []));
    open.set(sort, group);
    group.push(ask);
  }
  return groups;
}

/** Record, end, tokens, fence, notBefore. */
function valuesOf({ record, endsAt, tokens, fence, notBefore }: Change): unknown[] {
  const end = Math.min(Math.ceil(endsAt), Number.MAX_SAFE_INTEGER);
  return [record, end, tokens, tokens > 0 ? fence : 0, notBefore];
}

function messagesOf({ messages }: Change): string {
  return JSON.stringify(messages.map(({ inbox, text }) => [inbox, text]));
}

function transposed(rows: readonly unknown[][]): unknown[][] {
  return rows[0]!.map((_value, column) => rows.map((row) => row[column]));
}

function foundOf({ version, record, fence, time }: Row, written: boolean): Found {
  return {
    written,
    version: (version as string | null) ?? '',
    record: written ? null : ((record as string | null | undefined) ?? null),
    fence: Number(fence ?? 0),
    time: Number(time),
  };
}

function noneIfConflict(cause: unknown): readonly Row[] {
  if (isConflict(cause)) return [];
  throw cause;
}

/** @throws {LockConfigError} where a lock would not be safe. */
async function checkServer(connection: PostgresConnection): Promise<void> {
  const one = async (text: string) => (await connection.ask(text, []))[0] ?? {};
  const { version } = await one('SELECT version() AS version');
  const [other] = Object.entries(OTHERS).find(([, said]) => said.test(String(version))) ?? [];
  if (other !== undefined)
    throw configError(
      'STORE',
      `postgresStore: ${other} is not supported: locks need NOTIFY, COLLATE "C" and the single clock of a PostgreSQL server.`,
    );
  // Connections of our own have no transaction open.
  if (connection.atOnce !== undefined) return;
  const { name } = await one(TRANSACTION);
  if (name === undefined || name !== (await one(TRANSACTION))['name']) return;
  throw configError(
    'STORE',
    'postgresStore: "query" runs inside a transaction, where nobody sees a lock before the commit. Pass the query of the data source or the pool.',
  );
}
