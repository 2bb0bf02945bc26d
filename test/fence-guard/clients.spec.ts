// The guard by each client library: what it lets pass, what it refuses, and what it says about a release before the commit.
import { LockConfigError, Locks, LockLostError, type LockEvents } from 'nestjs-distributed-lock/core';
import { fenceGuard, FencedError, mysql2 } from 'nestjs-distributed-lock/fence-guard';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import promiseMysql from 'mysql2/promise';
import { sharedMariadb } from '../support/shared-server.js';
import { clients, type Client } from './clients.js';
import { leaseOf } from './lease-of.js';

describe.each(clients)('a fence guard by $name', ({ name, dialect, knowsTheEnd, nests, open }) => {
  const table = `fence_${name.replaceAll(/\W/g, '_').toLowerCase()}`;
  const fence = fenceGuard({ dialect, table });
  let client: Client;

  beforeAll(async () => {
    client = await open();
    await client.transaction((tx) => fence.migrate(client.runOf(tx)));
  });
  afterAll(() => client.close());

  const check = (key: string, token: number, options?: { shared: boolean }) =>
    client.transaction((tx) => fence.check(client.runOf(tx), { lease: leaseOf(key, token), ...options }));
  const ask = (sql: string, ...values: string[]) => client.transaction((tx) => client.runOf(tx)(sql, values));
  const seen = (key: string) => ask(`SELECT token FROM ${table} WHERE lock_key = ${dialect === 'postgres' ? '$1' : '?'}`, key);

  it('lets the first holder pass, the same again, also in one transaction, and each later one', async () => {
    for (const token of [5, 5, 6, 2 ** 53 - 1]) await check('grows', token);
    await client.transaction(async (tx) => {
      for (let again = 0; again < 2; again++) await fence.check(client.runOf(tx), { lease: leaseOf('grows', 2 ** 53 - 1) });
    });
    expect(Number(((await seen('grows'))[0] as { token: unknown }).token)).toBe(2 ** 53 - 1);
  });

  it('refuses an older holder as a lost lease, and its transaction is rolled back', async () => {
    await check('stale', 1_700_000_000_000_010);
    const stale = client.transaction(async (tx) => {
      await fence.check(client.runOf(tx), { lease: leaseOf('written by the stale one', 1) });
      await fence.check(client.runOf(tx), { lease: leaseOf('stale', 1_700_000_000_000_009) });
    });
    const error = await stale.catch((error: unknown) => error as LockLostError);
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ key: 'stale', cause: { token: 1_700_000_000_000_009, seen: '1700000000000010' } });
    expect((error as LockLostError).cause).toBeInstanceOf(FencedError);
    expect(await seen('written by the stale one')).toEqual([]);
    await check('stale', 1_700_000_000_000_010);
  });

  it('compares numbers, not digits', async () => {
    for (const token of [9, 10]) await check('digits', token);
    await expect(check('digits', 9)).rejects.toThrow(LockLostError);
  });

  const KEYS = [
    'it\'s "quoted" `so`; DROP TABLE x --',
    'case',
    'CASE',
    'case ',
    'Straße ☃ 😀',
    '$1 ? :name',
    "\\' OR 1 -- \\",
    'x'.repeat(512),
  ];

  it.each(dialect === 'mysql' ? ['', 'NO_BACKSLASH_ESCAPES'] : [''])('takes any key, each for itself %s', async (mode) => {
    const checkIn = (key: string, token: number, options: object) =>
      client.transaction(async (tx) => {
        const run = client.runOf(tx);
        if (mode) await run(`SET SESSION sql_mode = '${mode}'`, []);
        try {
          await fence.check(run, { lease: leaseOf(key + mode, token), ...options });
        } finally {
          if (mode) await run('SET SESSION sql_mode = DEFAULT', []);
        }
      });
    for (const key of KEYS) {
      for (const shared of [true, false]) await checkIn(key, 7, { shared });
      for (const shared of [true, false]) await expect(checkIn(key, 6, { shared })).rejects.toThrow(LockLostError);
    }
  });

  it('refuses an older reader, and writes nothing for a reader that is not', async () => {
    await check('read', 5);
    for (const token of [5, 9]) await check('read', token, { shared: true });
    await expect(check('read', 4, { shared: true })).rejects.toThrow(LockLostError);
    await check('read', 5);
    await check('read first', 5, { shared: true });
    await check('read first', 5);
    await expect(check('read first', 4)).rejects.toThrow(LockLostError);
  });

  it('says how to make a table that is missing', async () => {
    const other = fenceGuard({ dialect, table: 'nowhere' });
    const checked = client.transaction((tx) => other.check(client.runOf(tx), { lease: leaseOf('key', 1) }));
    const error = await checked.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockConfigError);
    expect(String(error)).toMatch(/no table "nowhere".*migrate/);
  });

  it('refuses what is no transaction', async () => {
    await expect((async () => fence.check(client.outside(), { lease: leaseOf('outside', 1) }))()).rejects.toThrow(LockConfigError);
    expect(await seen('outside')).toEqual([]);
  });

  if (nests)
    it('refuses a savepoint: one that is rolled back would take the check with it', async () => {
      const checkIn = (tx: unknown) => fence.check(client.runOf(tx), { lease: leaseOf('nested', 1) });
      await client.transaction(async (tx) => {
        await expect(client.nested!(tx, checkIn)).rejects.toThrow(/savepoint.*outermost/);
        await checkIn(tx);
      });
    });

  it('makes its table again without harm, and prunes only old rows', async () => {
    for (const key of ['kept', 'old', 'used again']) await check(key, 1);
    await client.transaction((tx) => fence.migrate(client.runOf(tx)));
    await client.transaction((tx) => fence.prune(client.runOf(tx), { olderThan: '1 day' }));
    expect(await seen('old')).toHaveLength(1);
    const longAgo = { postgres: "now() - interval '3 days'", mysql: 'NOW() - INTERVAL 3 DAY', sqlite: "datetime('now', '-3 days')" };
    await ask(`UPDATE ${table} SET at = ${longAgo[dialect]} WHERE lock_key <> 'kept'`);
    await check('used again', 1);
    await client.transaction((tx) => fence.prune(client.runOf(tx), { olderThan: '2 days' }));
    const [{ count }] = (await ask(`SELECT count(*) AS count FROM ${table}`)) as [{ count: unknown }];
    expect(Number(count)).toBe(2);
  });

  describe('and a release before the commit', () => {
    let locks: Locks;
    let warnings: string[];
    let events: LockEvents['releasedEarly'][];
    beforeEach(() => {
      [warnings, events] = [[], []];
      const warn = (line: string) => void warnings.push(line);
      locks = new Locks(memoryStore(), { logger: { warn, error: warn } });
      locks.on('releasedEarly', (event) => events.push(event));
    });
    afterEach(() => locks.close());

    const inTransaction = <T>(guard: typeof fence, work: () => Promise<T>, options?: Parameters<typeof fence.check>[1]) =>
      guard.transaction(client.transaction, (tx) => client.runOf(tx), work, options);

    it(`is ${knowsTheEnd ? '' : 'not '}noticed`, async () => {
      await client.transaction(async (tx) => {
        for (let call = 0; call < 3; call++) {
          await locks.mutex('stock').using(() => fence.check(client.runOf(tx)), { label: 'Stock.reduce' });
        }
      });
      expect(events.map(({ key, kind, label }) => ({ key, kind, label }))).toEqual(
        Array(knowsTheEnd ? 3 : 0).fill({ key: 'stock', kind: 'mutex', label: 'Stock.reduce' }),
      );
      expect(warnings).toHaveLength(knowsTheEnd ? 1 : 0);
      if (knowsTheEnd)
        expect(warnings[0]).toMatch(/^Stock\.reduce: "stock" was released while a transaction was open.*guarded.*clients\.spec.*released/s);
    });

    it('is noticed in fence.transaction', async () => {
      const lease = await locks.mutex('stock').acquire();
      await inTransaction(fence, () => lease.release(), { lease });
      expect(events).toEqual([expect.objectContaining({ guardedAt: expect.stringContaining('clients.spec') })]);
      expect(await inTransaction(fence, () => Promise.resolve(7), { lease: leaseOf('x', 1) })).toBe(7);
    });

    it('is no false alarm when the commit or rollback comes first, or the call is nested', async () => {
      const stock = locks.mutex('stock');
      const checked = () => client.transaction((tx) => fence.check(client.runOf(tx)));
      await stock.using(checked);
      await stock.using(async () => {
        await checked();
        await checked();
        await inTransaction(fence, () => Promise.resolve());
      });
      const failed = stock.using(() =>
        client.transaction(async (tx) => {
          await fence.check(client.runOf(tx));
          throw new Error('Sold out');
        }),
      );
      await expect(failed).rejects.toThrow('Sold out');
      await stock.using(() => client.transaction((tx) => stock.using(() => fence.check(client.runOf(tx))))); // enters its own key again
      // The connection goes back to the pool, and has another transaction open at the release.
      const lease = await stock.acquire();
      await client.transaction((tx) => fence.check(client.runOf(tx), { lease }));
      // Not on SQLite, where TypeORM has one query runner for all: it cannot tell the two apart.
      if (dialect === 'sqlite') await lease.release();
      else await client.transaction(async () => void (await lease.release()));
      expect([warnings, events]).toEqual([[], []]);
    });

    it('rejects the call if the guard is strict, and the key is free all the same', async () => {
      const strict = fenceGuard({ dialect, table, onOpenTransaction: 'throw' });
      const stock = locks.mutex('stock');
      const lease = await stock.acquire();
      await expect(inTransaction(strict, () => lease.release(), { lease })).rejects.toThrow(LockConfigError);
      expect(await stock.tryAcquire()).not.toBeNull();
    });
  });
});

it.each([{ rowsAsArray: true }, { nestTables: true }])(
  'a client with %j is refused, and no holder is taken for a stale one',
  async (options) => {
    const client = await promiseMysql.createConnection({ ...(await sharedMariadb()).connection, ...options });
    const fence = fenceGuard({ dialect: 'mysql', table: 'fence_of_rows' });
    await fence.migrate(mysql2(client));
    await client.beginTransaction();
    const refused = await fence.check(mysql2(client), { lease: leaseOf('rows', 5) }).catch((error: unknown) => error);
    await client.end();
    expect(refused).toBeInstanceOf(LockConfigError);
    expect(refused).toMatchObject({ message: expect.stringContaining('by the names of its columns') as string });
  },
);
