import type { EventEmitter } from 'node:events';
import { Socket } from 'node:net';
import { createConnection, createPool, type Connection, type Pool, type PoolOptions, type RowDataPacket } from 'mysql2/promise';
import { LockConfigError, type LockLogger, Locks, type StoreError } from 'nestjs-distributed-lock/core';
import { mysqlSchema, mysqlStore, type MysqlStoreOptions } from 'nestjs-distributed-lock/mysql';
import { MysqlClient } from '../../../lib/stores/mysql/mysql.client.js';
import { storeErrorOf } from '../../../lib/stores/mysql/mysql.errors.js';
import { MysqlTable, quoted } from '../../../lib/stores/mysql/mysql.table.js';
import { type Change, type Found, RecordSweep, VOID } from '../../../lib/stores/records/record.table.js';
import { wholeChange } from '../../support/change.js';
import { eventually } from '../../support/eventually.js';
import { mariadbUrl, startMariadb, type MariadbServer } from '../../support/mariadb-server.js';
import { rejection } from '../../support/rejection.js';
import { startProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { MYSQL } from '../../support/tcp-proxy-framing.js';

let server: MariadbServer;
let root: Connection;
let proxy: TcpProxy;
const ends: (() => Promise<unknown>)[] = [];
let keys = 0;
let key: string;

beforeAll(async () => {
  server = await startMariadb({ port: 'free' });
  proxy = await startProxy({ host: '127.0.0.1', port: server.port! }, undefined, MYSQL);
  root = await createConnection(server.connection);
  await root.query('CREATE DATABASE shop');
  await root.query('USE shop');
  await root.query(mysqlSchema());
});
beforeEach(() => (key = `key ${++keys}`));
afterEach(async () => {
  jest.restoreAllMocks();
  await proxy.heal();
  for (const end of ends.splice(0).reverse()) await end();
});
afterAll(async () => {
  await root.end();
  await proxy.close();
  await server.stop();
});

const urlOf = (part: object = {}) => mariadbUrl({ ...server.connection, database: 'shop', ...part });
const throughProxy = () => urlOf({ port: proxy.port });

function open({ url = urlOf(), requestTimeout = 2_000, table = 'distributed_lock', max = 4, pool = undefined as Pool | undefined } = {}) {
  const makePool = (connectionLimit = max) => pool ?? createPool({ uri: url, connectionLimit, connectTimeout: requestTimeout });
  const made = new MysqlTable(new MysqlClient(makePool, requestTimeout, mysqlSchema({ table }), false), quoted(table));
  ends.push(() => made.close());
  return made;
}

function locksOf(options: MysqlStoreOptions, logger: LockLogger | false = false): Locks {
  const locks = new Locks(mysqlStore(options), { logger });
  ends.push(() => locks.close());
  return locks;
}

const changeOf = (change: Partial<Change>): Change => wholeChange({ key, endsAt: Date.now() + 60_000, ...change });
const exchange = (table: MysqlTable, change: Partial<Change> = {}): Promise<Found> => table.exchange([changeOf(change)])[0]!;
const look = (table: MysqlTable): Promise<Found> => exchange(table, { expected: undefined });
const refusalOf = (work: Promise<unknown>): Promise<StoreError> => rejection(work) as Promise<StoreError>;

describe('a connection', () => {
  it.each(['reset', 'silence'] as const)('that loses a reply (%s) leaves the outcome open, and is replaced', async (then) => {
    const table = open({ url: throughProxy() });
    const { version } = await exchange(table, { record: 'one' });
    const loss = proxy.dropReplyTo(Buffer.from(key).toString('hex'), { then });
    const error = await refusalOf(exchange(table, { expected: version, record: 'two' }));
    expect(error).toMatchObject({ name: 'StoreError', transient: true, isUnsent: false });
    expect(loss.lost).toBe(1);
    expect(await look(table)).toMatchObject({ record: 'two' });
    await eventually(() => expect(proxy.connections).toBe(1));
  });

  it('that is half open costs a request timeout, and is closed', async () => {
    const table = open({ url: throughProxy(), max: 2 });
    await Promise.all([1, 2].map(() => exchange(table)));
    proxy.blackhole();
    for (const error of await Promise.all([1, 2].map(() => refusalOf(exchange(table))))) {
      expect(error).toMatchObject({ transient: true, isUnsent: false });
    }
    // A new one gets no greeting.
    expect(await refusalOf(exchange(table))).toMatchObject({ transient: true, isUnsent: true });
    await proxy.heal();
    expect((await exchange(table, { key: `${key} new` })).written).toBe(true);
  });

  it.each(['url', 'pool'])('of a %s that takes longer than a request is waited for, and used', async (given) => {
    const pool = createPool({ uri: throughProxy(), connectionLimit: 1 });
    ends.push(() => pool.end());
    const locks = locksOf({ ...(given === 'pool' ? { pool } : { url: throughProxy(), max: 1 }), requestTimeout: 2_000 });
    const before = proxy.made;
    proxy.delay(2_500, 0, 'replies');
    await expect(locks.tryAcquire(key)).rejects.toThrow('within 2000 ms');
    await proxy.heal();
    await locks.acquire(key, { waitTimeout: 5_000 });
    expect(proxy.made - before).toBe(1);
  });

  it('that nobody uses does not keep its process alive', async () => {
    interface Handle {
      readonly remotePort?: number;
      readonly _handle?: { hasRef(): boolean };
    }
    const held = () =>
      (process as unknown as { _getActiveHandles(): Handle[] })
        ._getActiveHandles()
        .filter(({ remotePort, _handle }) => remotePort === server.port && _handle?.hasRef()).length;
    // That of the test. Others may be about to close.
    await eventually(() => held() === 1);
    const table = open();
    await exchange(table);
    expect(held()).toBe(1);
    expect((await look(table)).record).toBe('record');
  });
});

describe('a server', () => {
  it('that is killed and restarted is used again, and has lost nothing', async () => {
    const table = open();
    const { version } = await exchange(table, { record: 'one', tokens: 1, fence: 7 });
    await root.end();
    await server.kill();
    expect(await refusalOf(exchange(table, { expected: version }))).toMatchObject({ transient: true, isRefusal: false });
    await server.restart();
    root = await createConnection({ ...server.connection, database: 'shop' });
    expect(await eventually(() => exchange(table, { expected: version, record: 'two' }))).toMatchObject({ written: true, fence: 7 });
  });

  it('that is down for a while costs a waiting caller nothing but the time, and the log says so (G4, G9)', async () => {
    const warn = jest.fn<void, [string]>();
    const locks = locksOf({ url: throughProxy(), requestTimeout: 2_000 }, { warn, error: warn });
    const lease = await locks.acquire(key, { keyTimeout: 60_000 });
    proxy.refuse();
    proxy.cut();
    const refused = { name: 'StoreError', transient: true, isUnsent: true, message: expect.stringContaining('ECONNREFUSED') };
    await expect(locks.acquire(`${key} other`, { waitTimeout: 400 })).rejects.toMatchObject(refused);
    const waits = locks.acquire(`${key} third`, { waitTimeout: 60_000, retryInterval: 100 });
    const away = [expect.stringMatching(/^Mysql does not answer since .+Z: connect ECONNREFUSED .+; locks wait \[NDL_STORE_AWAY\]$/)];
    await eventually(() => expect(warn.mock.calls).toEqual([away]));
    await proxy.heal();
    await (await waits).release();
    await eventually(() => expect(warn.mock.calls).toEqual([away, [expect.stringMatching(/^Mysql answers again after /)]]));
    lease.assertHeld();
    expect(await lease.release()).toBe(true);
  });

  it('that is read-only is an outage, which passes', async () => {
    await root.query("CREATE USER IF NOT EXISTS app IDENTIFIED BY 'secret'");
    await root.query('GRANT ALL ON shop.* TO app');
    const table = open({ url: urlOf().replace('root', 'app:secret') });
    await exchange(table);
    await root.query('SET GLOBAL read_only = 1');
    try {
      expect(await refusalOf(exchange(table, { key: `${key} new` }))).toMatchObject({ transient: true, isRefusal: true });
    } finally {
      await root.query('SET GLOBAL read_only = 0');
    }
    expect((await exchange(table, { key: `${key} new` })).written).toBe(true);
  });
});

describe('is refused for good', () => {
  it.each([
    ['a user that there is not', () => urlOf({ user: 'nobody' }), /Access denied/],
    ['a wrong password', () => urlOf().replace('root', 'root:wrong'), /Access denied/],
    ['a database that there is not', () => urlOf({ database: 'nothing' }), /Unknown database 'nothing'/],
  ])('%s', async (_name, url, message) => {
    expect(await refusalOf(exchange(open({ url: url() })))).toMatchObject({ transient: false, message: expect.stringMatching(message) });
  });

  it.each(['{}', '{"rejectUnauthorized":false}'])('a server without TLS, by a URL with ssl=%s', async (ssl) => {
    const url = `${urlOf()}?ssl=${ssl}`;
    expect(await refusalOf(exchange(open({ url })))).toMatchObject({
      transient: false,
      message: expect.stringMatching(/secure connection/),
    });
  });

  it('a user without the right to the table', async () => {
    await root.query('CREATE USER IF NOT EXISTS reader');
    await root.query('GRANT SELECT ON shop.* TO reader');
    const table = open({ url: urlOf({ user: 'reader' }) });
    expect(await look(table)).toMatchObject({ written: false });
    expect(await refusalOf(exchange(table))).toMatchObject({ transient: false, isRefusal: true, message: expect.stringMatching(/denied/) });
  });

  it('a table that there is not: the error says what to run', async () => {
    const table = open({ table: 'missing' });
    const error = await refusalOf(exchange(table));
    expect(error).toMatchObject({ name: 'StoreError', transient: false });
    await root.query(/CREATE TABLE[^]*$/.exec(error.message)![0]);
    expect((await exchange(table)).written).toBe(true);
  });

  it.each([
    [{}, 'exactly one of url, pool, not none'],
    [{ url: 'shop' }, '"url" must be a URL'],
    [{ url: 'mysql://localhost/shop', tabel: 'locks' }, 'unknown option "tabel"'],
    [{ url: 'mysql://localhost/shop', table: 'a`b' }, '"table" must be the name of a table'],
    [{ pool: {} }, '"pool" must be a pool of mysql2'],
    [{ pool: createPool('mysql://localhost/shop'), max: 3 }, '"max" is for a "url"'],
    [{ pool: createPool('mysql://localhost') }, '"pool" names no database, so "table" must'],
    [{ url: 'mysql://me:100%@localhost/shop' }, 'with %25 for a % in the password'],
    [{ url: 'mysql://localhost' }, '"url" names no database, so "table" must'],
  ])('%p, which is a mistake', (options, message) => {
    expect(() => mysqlStore(options as unknown as MysqlStoreOptions)).toThrow(LockConfigError);
    expect(() => mysqlStore(options as unknown as MysqlStoreOptions)).toThrow(message);
  });
});

describe('beside a pool of the app', () => {
  function poolOf(options: PoolOptions = {}): Pool {
    const pool = createPool({ uri: urlOf(), connectionLimit: 1, ...options });
    ends.push(() => pool.end());
    return pool;
  }

  it.each(['BEGIN', 'SET autocommit = 0', 'USE other'])('a connection that was left behind with %s grants what others see', async (sql) => {
    await root.query('CREATE DATABASE IF NOT EXISTS other');
    await root.query(mysqlSchema({ table: 'other.distributed_lock' }));
    const pool = poolOf();
    const connection = await pool.getConnection();
    await connection.query(sql);
    connection.release();
    const [one, other] = [locksOf({ pool }), locksOf({ url: urlOf() })];
    await one.acquire(key);
    expect(await other.tryAcquire(key)).toBeNull();
  });

  it('with placeholders of its own, locks use those of MySQL', async () => {
    const queryFormat = (text: string): string => text.replaceAll(':name', '1');
    const [one, other] = [locksOf({ pool: poolOf({ queryFormat }) }), locksOf({ url: urlOf() })];
    const lease = await one.acquire(key);
    expect(await other.tryAcquire(key)).toBeNull();
    await lease.release();
  });

  it('a password that the app has changed in its pool is used from the next connection on', async () => {
    await root.query("CREATE USER turning IDENTIFIED BY 'new'");
    await root.query('GRANT ALL ON shop.* TO turning');
    const pool = poolOf({ uri: urlOf().replace('root', 'turning:old') });
    const locks = locksOf({ pool });
    await expect(locks.acquire(key)).rejects.toMatchObject({ message: expect.stringMatching(/Access denied/) });
    (pool as unknown as { pool: { config: { connectionConfig: { password: string } } } }).pool.config.connectionConfig.password = 'new';
    await (await locks.acquire(key)).release();
  });
});

it('a server with autocommit off grants what others see', async () => {
  await root.query('SET GLOBAL autocommit = 0');
  ends.push(() => root.query('SET GLOBAL autocommit = 1'));
  await locksOf({ url: urlOf() }).acquire(key);
  expect(await locksOf({ url: urlOf() }).tryAcquire(key)).toBeNull();
});

it.each(['sql_safe_updates = 1', 'sql_select_limit = 3'])('a server with %s renews leases together (G4)', async (setting) => {
  const keysOf = Array.from({ length: 12 }, (_, i) => `${key} ${i}`);
  await root.query(`SET GLOBAL ${setting}`);
  try {
    const locks = locksOf({ url: urlOf() });
    const leases = await Promise.all(keysOf.map((each) => locks.acquire(each, { keyTimeout: 60_000 })));
    await Promise.all(leases.map((lease) => lease.renew()));
  } finally {
    await root.query(`SET GLOBAL ${setting.split(' ')[0]} = DEFAULT`);
  }
});

it('an idle connection shows the network that it is alive, before that drops it', async () => {
  const keepAlive = jest.spyOn(Socket.prototype, 'setKeepAlive');
  await (await locksOf({ url: urlOf() }).acquire(key)).release();
  expect(keepAlive).toHaveBeenLastCalledWith(true, 10_000);
});

it('what a transaction has written that a pooler left open is no grant, and its connection is closed', async () => {
  const pool = createPool({ uri: urlOf(), connectionLimit: 1 });
  const table = open({ pool, requestTimeout: 5_000 });
  await exchange(table, { key: `${key} other` });
  const connection = await pool.getConnection();
  await connection.query('BEGIN');
  connection.release();
  expect(await refusalOf(exchange(table))).toMatchObject({ transient: true, isUnsent: false });
  expect(await exchange(table)).toMatchObject({ written: true });
  expect(await look(open())).toMatchObject({ record: 'record' });
});

it('statements that wait for a lock of the app are ended, and never more than `max` wait', async () => {
  const table = open({ max: 2 });
  const rows = await Promise.all(Array.from({ length: 4 }, (_, i) => exchange(table, { key: `${key} ${i}` })));
  const waiting = async (): Promise<number> =>
    (await root.query<RowDataPacket[]>('SHOW PROCESSLIST'))[0].filter(({ Info }) => String(Info).startsWith('UPDATE')).length;
  const blocker = await createConnection({ ...server.connection, database: 'shop' });
  ends.push(() => blocker.end());
  await blocker.query('BEGIN');
  await blocker.query('SELECT * FROM distributed_lock FOR UPDATE');
  const errors: StoreError[] = [];
  let [most, isOver] = [0, false];
  const counted = eventually(
    async () => {
      most = Math.max(most, await waiting());
      return isOver;
    },
    { every: 50 },
  );
  await Promise.all(
    rows.map(async ({ version }, i) => {
      for (let isUnsent = true; isUnsent; isUnsent = errors.at(-1)!.isUnsent) {
        errors.push(await refusalOf(exchange(table, { key: `${key} ${i}`, expected: version })));
      }
    }),
  );
  isOver = true;
  await counted;
  for (const error of errors) expect(error).toMatchObject({ name: 'StoreError', transient: true });
  expect(errors.some(({ isUnsent }) => isUnsent)).toBe(true);
  expect(most).toBe(2);
  await eventually(async () => expect(await waiting()).toBe(0));
  await blocker.query('COMMIT');
  await eventually(async () =>
    expect(await exchange(table, { key: `${key} 0`, expected: rows[0]!.version })).toMatchObject({ written: true }),
  );
});

const TRANSIENT = { transient: true, isRefusal: true };
it.each([
  ['passes, and nothing was done', TRANSIENT, [1040, 1290, 1836, 1105, 9001, 9002, 1999]],
  ['passes, though its state is one of syntax', { ...TRANSIENT, sqlState: '42000' }, [1203, 1226, 1461]],
  ['passes, and may have been done', { ...TRANSIENT, isRefusal: false }, [1020, 1053, 1180, 1205, 1213, 1927, 2013, 3100]],
  ['is final', { transient: false, isRefusal: true }, [1064, 1142, 1146, 1267, 1785, 3098, 4151]],
])('an error of the server %s', (_what, { sqlState = 'HY000', ...expected }: typeof TRANSIENT & { sqlState?: string }, numbers) => {
  for (const errno of numbers)
    expect([errno, storeErrorOf(Object.assign(new Error('text'), { errno, sqlState }))]).toMatchObject([errno, expected]);
});

it.each([
  ['read ECONNRESET', true],
  ['Client network socket disconnected before secure TLS connection was established', true],
  ['self-signed certificate', false],
])('an error in the handshake, %s, passes: %s', (text, transient) => {
  expect(storeErrorOf(Object.assign(new Error(text), { code: 'HANDSHAKE_SSL_ERROR' }))).toMatchObject({ transient, isRefusal: !transient });
});

it('a message of MySQL that ends with a full stop has one', () => {
  const cause = Object.assign(new Error('Cannot execute statement in a READ ONLY transaction.'), { errno: 1792 });
  expect(storeErrorOf(cause).message).toContain('a READ ONLY transaction. Use the address of the primary.');
});

it.each([1105, 9001])('error %d, as of a proxy whose server is away, is waited for, and keeps no key taken (G7, G9)', async (errno) => {
  const [locks, others] = [1, 2].map(() => locksOf({ url: urlOf(), requestTimeout: 2_000 })) as [Locks, Locks];
  const long = { keyTimeout: 300_000, waitTimeout: Infinity, retryInterval: 50 };
  const unknown: string[] = [];
  locks.on('unknown', ({ operation }) => unknown.push(operation));
  await (await locks.acquire(`${key} free`, long)).release();
  const lease = await locks.acquire(key, long);
  const signal = `SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = ${errno}, MESSAGE_TEXT = 'no server'`;
  await root.query(`CREATE TRIGGER away BEFORE UPDATE ON distributed_lock FOR EACH ROW ${signal}`);
  const waiting = locks.acquire(`${key} free`, long);
  expect(await lease.release()).toBe(true);
  await eventually(() => expect(unknown).toContain('release'));
  await root.query('DROP TRIGGER away');
  await (await waiting).release();
  // Its lease would last for five minutes.
  await (await others.acquire(key, long)).release();
});

it('two errors of one connection end no process', async () => {
  const pool = createPool({ uri: urlOf() });
  let raw: EventEmitter | undefined;
  pool.on('connection', (connection) => (raw = connection as never));
  const table = open({ pool, requestTimeout: 5_000 });
  await exchange(table);
  for (const text of ['one', 'two']) raw!.emit('error', new Error(text));
  expect((await look(table)).record).toBe('record');
});

it('a change that waits for the lock of a row too long was not made', async () => {
  const pool = createPool({ uri: urlOf(), connectionLimit: 2 });
  pool.on('connection', (connection) => void connection.query('SET innodb_lock_wait_timeout = 1'));
  const table = open({ pool, requestTimeout: 5_000 });
  const many = [`${key} a`, `${key} b`];
  const versions = await Promise.all(many.map(async (each) => (await exchange(table, { key: each, record: 'one' })).version));
  await root.query('BEGIN');
  await root.query('SELECT * FROM distributed_lock WHERE id = ? FOR UPDATE', [Buffer.from(many[0]!)]);
  const both = many.map((each, i) => changeOf({ key: each, expected: versions[i], record: 'two' }));
  const [first, second] = await Promise.all(table.exchange(both));
  await root.query('ROLLBACK');
  expect(first).toMatchObject({ written: false, record: 'one', version: versions[0] });
  expect(second).toMatchObject({ written: true });
});

/** Ids of transactions. */
const waited = new Set<unknown>();
/** Resolves when a transaction waits for a row. The server's list may be a tenth of a second old: one that was seen before does not count. */
async function oneWaits(): Promise<void> {
  const sql = "SELECT trx_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
  const waiting = await eventually(
    async () => {
      const ids = (await root.query<RowDataPacket[]>(sql))[0].map((row) => row.trx_id as unknown).filter((id) => !waited.has(id));
      expect(ids).toHaveLength(1);
      return ids[0];
    },
    { every: 300 },
  ); // asked for more often, the list is never made again
  waited.add(waiting);
}

it('a row that others have changed since a SERIALIZABLE transaction began is taken by them, and is no error', async () => {
  const [ofSnapshots] = await root.query<RowDataPacket[]>("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'");
  const pool = createPool({ uri: urlOf(), connectionLimit: 1 });
  pool.on('connection', (connection) => {
    void connection.query('SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE');
    // On by default in MariaDB 11.8. MySQL does not have it.
    if (ofSnapshots.length > 0) void connection.query('SET innodb_snapshot_isolation = 1');
  });
  const table = open({ pool, requestTimeout: 60_000 });
  const { version } = await exchange(table);
  await root.query('BEGIN');
  await root.query("UPDATE distributed_lock SET version = 5, record = 'theirs' WHERE id = ?", [Buffer.from(key)]);
  const change = exchange(table, { expected: version, record: 'ours' });
  change.catch(() => undefined);
  await oneWaits();
  await root.query('COMMIT');
  expect(await change).toMatchObject({ written: false, version: '5', record: 'theirs' });
});

it('changes that are rolled back in a deadlock are tried again one by one', async () => {
  const table = open({ requestTimeout: 60_000 });
  const [one, other] = [`${key} a`, `${key} b`];
  const versions = await Promise.all([one, other].map(async (each) => (await exchange(table, { key: each })).version));
  const numberOf = async (sql: string): Promise<number> => Number(Object.values((await root.query<RowDataPacket[]>(sql))[0][0]!).at(-1));
  const deadlocks = () => numberOf("SELECT SUM(COUNT) FROM information_schema.INNODB_METRICS WHERE NAME = 'lock_deadlocks'");
  const before = await deadlocks();
  const lock = (of: string) => root.query('SELECT * FROM distributed_lock WHERE id = ? FOR UPDATE', [Buffer.from(of)]);
  await root.query('BEGIN');
  // The server rolls back the one that has changed less.
  const rows = Array.from({ length: 100 }, (_, i) => [Buffer.from(`${key} row ${i}`), 1, null, 0, 0]);
  await root.query('INSERT INTO distributed_lock (id, version, record, ends_at, fence) VALUES ?', [rows]);
  await lock(other);
  const both = Promise.all(table.exchange([one, other].map((each, i) => changeOf({ key: each, expected: versions[i], record: 'two' }))));
  await oneWaits();
  await lock(one);
  await root.query('ROLLBACK');
  expect(await both).toMatchObject([{ written: true }, { written: true }]);
  expect(await deadlocks()).toBe(before + 1);
});

it('the table is made where that is wanted, also by several at once', async () => {
  const isThere = async () => (await root.query<RowDataPacket[]>("SHOW TABLES LIKE 'made'"))[0].length === 1;
  expect(await isThere()).toBe(false);
  const all = Array.from({ length: 4 }, () => locksOf({ url: urlOf(), table: 'shop.made', schema: 'create' }));
  await Promise.all(all.map((locks, i) => locks.acquire(`${key} ${i}`)));
  expect((await root.query<RowDataPacket[]>('SELECT id FROM made WHERE record IS NOT NULL'))[0]).toHaveLength(4);
});

it('a table that is there is not made again, for who has no right to', async () => {
  await root.query('CREATE USER IF NOT EXISTS writer');
  await root.query('GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO writer');
  const locks = locksOf({ url: urlOf({ user: 'writer' }), schema: 'create' });
  await (await locks.acquire(key)).release();
});

it.each(['one', 'several', 'a new'])(
  'a change (%s) that was timed by a clock that has been set forward since is not made',
  async (kind) => {
    const pool = createPool({ uri: urlOf(), connectionLimit: 1 });
    const table = open({ pool, requestTimeout: 5_000 });
    const several = [`${key} a`, `${key} b`];
    const keysOf = { one: [key], several, 'a new': [`${key} new`] }[kind]!;
    const versions = await Promise.all(
      [key, ...several].map(async (each) => [each, (await exchange(table, { key: each })).version] as const),
    );
    await pool.query('SET timestamp = UNIX_TIMESTAMP() + 3600');
    const late = (part: Partial<Change> = {}) =>
      keysOf.map((each) => changeOf({ key: each, expected: new Map(versions).get(each) ?? VOID, record: 'late', ...part }));
    for (const each of await Promise.all(table.exchange(late()))) {
      expect(each).toMatchObject({ written: false, record: null });
      expect(each.time).toBeGreaterThan(Date.now() + 3_000_000);
    }
    for (const each of await Promise.all(table.exchange(late({ endsAt: Date.now() + 7_200_000 })))) expect(each.written).toBe(true);
  },
);

it('600 leases are renewed by some statements, not by one for each', async () => {
  const store = mysqlStore({ url: urlOf(), requestTimeout: 60_000 });
  ends.push(() => store.close());
  const updates = async (): Promise<number> => {
    const [rows] = await root.query<RowDataPacket[]>("SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_update', 'Com_update_multi')");
    return rows.reduce((sum, { Value }) => sum + Number(Value), 0);
  };
  const leases = Array.from({ length: 600 }, (_, i) => ({ key: `${key} ${i}`, owner: `owner ${i}`, ttl: 60_000 }));
  await Promise.all(leases.map((lease) => store.mutex.acquire({ ...lease, tokens: 1, queue: false })));
  const before = await updates();
  expect(new Set(await Promise.all(store.mutex.renew(leases)))).toEqual(new Set(['renewed']));
  expect((await updates()) - before).toBeLessThan(10);
});

it('a process may sweep with its first request, as many do not live for long', async () => {
  await root.query(mysqlSchema({ table: 'swept_at_once' }));
  await root.query("INSERT INTO swept_at_once (id, version, record, ends_at, fence) VALUES ('old', 1, NULL, 0, 1)");
  const firstOf = jest.replaceProperty(RecordSweep, 'firstOf', 1);
  const table = open({ table: 'swept_at_once', requestTimeout: 30_000 });
  firstOf.restore();
  await exchange(table, { key: 'new' });
  await eventually(async () => {
    const [rows] = await root.query("SELECT id FROM swept_at_once WHERE id = 'old'");
    expect(rows).toEqual([]);
  });
});

it('a sweep deletes all that has ended for long, not only the first page, and locks nothing else', async () => {
  const table = open({ table: 'swept', requestTimeout: 30_000 });
  await root.query(mysqlSchema({ table: 'swept' }));
  await exchange(table, { key: 'taken' });
  await exchange(table, { key: 'fresh', record: null, endsAt: Date.now() });
  for (let i = 0; i < 20; i++) await exchange(table, { key: `old ${i}`, record: null, endsAt: Date.now() - 3_700_000 });
  await root.query('BEGIN');
  await root.query("SELECT * FROM swept WHERE id = 'taken' FOR UPDATE");
  await table.sweep();
  await root.query('ROLLBACK');
  const old = Array.from({ length: 20_000 }, (_, i) => [`older ${i}`, 1, null, Date.now() - 3_700_000, 1]);
  await root.query('INSERT INTO swept (id, version, record, ends_at, fence) VALUES ?', [old]);
  await table.sweep();
  const found: string[] = [];
  for await (const some of table.keys('')) found.push(...some);
  expect(found.sort()).toEqual(['fresh', 'taken']);
});
