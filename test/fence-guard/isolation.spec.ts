// What the guard makes of two transactions at the same time, on real servers at each isolation level.
import mysqlDriver from 'mysql2/promise';
import pgDriver from 'pg';
import { LockLostError } from 'nestjs-distributed-lock/core';
import { fenceGuard, mysql2, pg, type FenceableLease, type Run } from 'nestjs-distributed-lock/fence-guard';
import { eventually } from '../support/eventually.js';
import { sharedMariadb, sharedPostgres } from '../support/shared-server.js';
import { leaseOf } from './lease-of.js';

interface Session {
  run: Run;
  /** One statement; resolves to the first value of its first row. */
  ask(sql: string): Promise<unknown>;
  begin(level: string): Promise<void>;
  /** Whether a statement of it waits for a lock of another. */
  isWaiting(): Promise<boolean>;
  close(): Promise<void>;
}

async function openPg(): Promise<Session> {
  const { connection } = await sharedPostgres();
  const [client, observer] = [new pgDriver.Client(connection), new pgDriver.Client(connection)];
  await Promise.all([client.connect(), observer.connect()]);
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return {
    run: pg(client),
    ask: async (sql) => Object.values((await client.query<Record<string, unknown>>(sql)).rows[0] ?? {})[0],
    begin: async (level) => void (await client.query(`BEGIN ISOLATION LEVEL ${level}`)),
    async isWaiting() {
      const { rowCount } = await observer.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'", [
        rows[0]!.pid,
      ]);
      return rowCount === 1;
    },
    close: async () => void (await Promise.all([client.end(), observer.end()])),
  };
}

async function openMysql(): Promise<Session> {
  const { connection } = await sharedMariadb();
  const [client, observer] = await Promise.all([mysqlDriver.createConnection(connection), mysqlDriver.createConnection(connection)]);
  return {
    run: mysql2(client),
    ask: async (sql) => Object.values(((await client.query(sql))[0] as object[])[0] ?? {})[0] as unknown,
    async begin(level) {
      await client.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
      await client.query('START TRANSACTION');
    },
    async isWaiting() {
      const sql = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = ? AND trx_state = 'LOCK WAIT'";
      const [rows] = await observer.query(sql, [client.threadId]);
      return (rows as object[]).length === 1;
    },
    close: async () => void (await Promise.all([client.end(), observer.end()])),
  };
}

/** InnoDB renews its list of transactions only when nobody has read it for 100 ms. */
const isBlocked = (session: Session) => eventually(() => session.isWaiting(), { every: 120 });

const LEVELS = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'];
const OLD = leaseOf('stock', 1);
const NEW = leaseOf('stock', 2);
/** Postgres; MariaDB with `innodb_snapshot_isolation`. */
const FAILURES = ['40001', 'ER_CHECKREAD'];
const isSerializationFailure = (error: unknown) => FAILURES.includes(String((error as { code?: unknown } | undefined)?.code));

describe.each([
  ['postgres', openPg],
  ['mysql', openMysql],
] as const)('a fence guard on %s', (dialect, open) => {
  const fence = fenceGuard({ dialect, table: 'isolation_fence' });
  let a: Session;
  let b: Session;
  beforeAll(async () => {
    [a, b] = await Promise.all([open(), open()]);
    await fence.migrate(a.run);
    await a.ask('CREATE TABLE stock (units int)');
  });
  beforeEach(async () => {
    for (const sql of ['DELETE FROM stock', 'INSERT INTO stock VALUES (10)', 'DELETE FROM isolation_fence']) await a.ask(sql);
  });
  afterEach(async () => {
    for (const session of [a, b]) await session.ask('ROLLBACK');
  });
  afterAll(async () => {
    for (const session of [a, b]) await session.close();
  });

  /** Begins a transaction of the session with a check that passes at once. */
  const enter = async (session: Session, level: string, lease: FenceableLease, shared = false) => {
    await session.begin(level);
    await fence.check(session.run, { lease, shared });
  };
  /** Begins one with a check that has to wait; what becomes of it: an error, or nothing. */
  const waitsToEnter = async (session: Session, level: string, lease: FenceableLease) => {
    await session.begin(level);
    const waiting = fence.check(session.run, { lease }).catch((error: unknown) => error);
    await isBlocked(session);
    return { waiting };
  };
  const unitsFor = async (session: Session) => Number(await session.ask('SELECT units FROM stock'));
  const write = (session: Session, units: number) => session.ask(`UPDATE stock SET units = ${units}`);

  describe.each(LEVELS)('at %s', (level) => {
    const late =
      dialect === 'mysql' ? (level === 'SERIALIZABLE' ? 'ER_LOCK_DEADLOCK' : undefined) : level === 'READ COMMITTED' ? undefined : '40001';

    it('refuses the older holder after the newer one has committed', async () => {
      await enter(b, level, NEW);
      await b.ask('COMMIT');
      await a.begin(level);
      await expect(fence.check(a.run, { lease: OLD })).rejects.toThrow(LockLostError);
    });

    it('makes the older holder wait for the open transaction of the newer one, and refuses it then', async () => {
      await enter(b, level, NEW);
      const { waiting } = await waitsToEnter(a, level, OLD);
      await b.ask('COMMIT');
      const error = await waiting;
      expect(error instanceof LockLostError || isSerializationFailure(error)).toBe(true);
    });

    it('lets the newer holder wait for the open transaction of the older one, and see what it wrote', async () => {
      await enter(a, level, OLD);
      const { waiting } = await waitsToEnter(b, level, NEW);
      await write(a, (await unitsFor(a)) - 1);
      await a.ask('COMMIT');
      if (isSerializationFailure(await waiting)) {
        // The snapshot of the transaction is older than its wait: it is tried again.
        expect([dialect, level]).not.toEqual([dialect, 'READ COMMITTED']);
        await b.ask('ROLLBACK');
        await enter(b, level, NEW);
      }
      expect((await waiting) === undefined || isSerializationFailure(await waiting)).toBe(true);
      expect(await unitsFor(b)).toBe(9);
      await b.ask('COMMIT');
    });

    it(`a transaction that reads first and checks later ${late === undefined ? 'loses an update' : `fails with ${late}`}`, async () => {
      // On by default in MariaDB 11.8: then no update is lost.
      const isOn = "SHOW VARIABLES WHERE Variable_name = 'innodb_snapshot_isolation' AND Value = 'ON'";
      const hasSnapshots = dialect === 'mysql' && level === 'REPEATABLE READ' && (await b.ask(isOn)) !== undefined;
      const expected = hasSnapshots ? 'ER_CHECKREAD' : late;
      await enter(a, level, OLD);
      await b.begin(level);
      const before = await unitsFor(b); // too early
      const waiting = fence.check(b.run, { lease: NEW }).catch((error: unknown) => error);
      await isBlocked(b);
      const outcomes = [await write(a, 9).catch((error: unknown) => error)];
      await a.ask('COMMIT');
      outcomes.push(await waiting);
      const codes = outcomes.map((error) => (error as { code?: unknown } | undefined)?.code).filter((code) => code !== undefined);
      expect(codes).toEqual(expected === undefined ? [] : [expected]);
      if (expected !== undefined) return;
      await write(b, before - 1);
      await b.ask('COMMIT');
      expect(await unitsFor(b)).toBe(9); // two have taken one of ten
    });

    it('lets readers work at the same time, and makes a writer wait for them', async () => {
      await enter(a, level, OLD);
      await a.ask('COMMIT');
      for (const session of [a, b]) await enter(session, level, OLD, true);
      await b.ask('COMMIT');
      const { waiting } = await waitsToEnter(b, level, NEW);
      await a.ask('COMMIT');
      expect(await waiting).toBeUndefined();
    });

    it('makes a writer wait for the first reader of a key, too', async () => {
      await enter(a, level, OLD, true);
      const { waiting } = await waitsToEnter(b, level, NEW);
      await a.ask('COMMIT');
      const error = await waiting;
      expect(error === undefined || isSerializationFailure(error)).toBe(true);
    });
  });

  it("passes the database's own errors on: a lock timeout is not a lost lease", async () => {
    await enter(a, 'READ COMMITTED', OLD);
    await b.ask(dialect === 'postgres' ? "SET lock_timeout = '20ms'" : 'SET innodb_lock_wait_timeout = 0');
    await b.begin('READ COMMITTED');
    const error = await fence.check(b.run, { lease: NEW }).catch((error: unknown) => error);
    expect((error as { code: string }).code).toBe(dialect === 'postgres' ? '55P03' : 'ER_LOCK_WAIT_TIMEOUT');
    await b.ask('ROLLBACK');
    await b.ask(dialect === 'postgres' ? 'RESET lock_timeout' : 'SET innodb_lock_wait_timeout = DEFAULT');
  });

  it('is kept when a savepoint is rolled back, if it was checked in the outermost transaction', async () => {
    await enter(a, 'READ COMMITTED', OLD);
    await a.ask('SAVEPOINT inner_one');
    await fence.check(a.run, { lease: OLD });
    await a.ask('ROLLBACK TO SAVEPOINT inner_one');
    const { waiting } = await waitsToEnter(b, 'READ COMMITTED', NEW);
    await a.ask('COMMIT');
    expect(await waiting).toBeUndefined();
  });

  it('refuses a client whose transaction is closed, or was never opened', async () => {
    await enter(a, 'READ COMMITTED', NEW);
    await a.ask('COMMIT');
    await expect(fence.check(a.run, { lease: NEW })).rejects.toThrow('without an open transaction');
    await expect(fence.check(b.run, { lease: NEW })).rejects.toThrow('without an open transaction');
  });

  it('makes one table when two make it at the same time', async () => {
    const other = fenceGuard({ dialect, table: 'made_twice' });
    await a.begin('READ COMMITTED');
    await other.migrate(a.run);
    const second = other.migrate(b.run);
    if (dialect === 'postgres') await isBlocked(b); // MariaDB commits a new table at once
    await a.ask('COMMIT');
    await expect(second).resolves.toBeUndefined();
  });

  it('takes the keys of several leases in one order, so that they do not wait for each other', async () => {
    const several = (token: number, ...keys: string[]) =>
      Object.assign(leaseOf(keys.join(), null), { leases: keys.map((key) => leaseOf(key, token)) });
    await enter(a, 'READ COMMITTED', leaseOf('x', 1));
    const { waiting } = await waitsToEnter(b, 'READ COMMITTED', several(2, 'y', 'x'));
    await fence.check(a.run, { lease: several(1, 'x', 'y') }); // b does not have y while it waits for x
    await a.ask('COMMIT');
    expect(await waiting).toBeUndefined();
    await b.ask('COMMIT');
    await a.begin('READ COMMITTED');
    await expect(fence.check(a.run, { lease: leaseOf('y', 1) })).rejects.toThrow(LockLostError);
  });
});
