// Which leases the guard takes, its options, and its helpers for what is no client of a database here.
import pgDriver from 'pg';
import { LockConfigError, Locks, LockLostError, UnsupportedPrimitiveError, currentLease } from 'nestjs-distributed-lock/core';
import { fenceGuard, mikroOrm, pg, sequelize } from 'nestjs-distributed-lock/fence-guard';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { sharedPostgres } from '../support/shared-server.js';
import { inTransactionOf } from './in-transaction.js';
import { leaseOf } from './lease-of.js';

const TABLE = 'fence_of_leases';
const fence = fenceGuard({ dialect: 'postgres', table: TABLE });

let pool: pgDriver.Pool;
let inTransaction: ReturnType<typeof inTransactionOf>;
beforeAll(async () => {
  pool = new pgDriver.Pool((await sharedPostgres()).connection);
  inTransaction = inTransactionOf(pool);
  await inTransaction((client) => fence.migrate(pg(client)));
});
afterAll(() => pool.end());

const opened: Locks[] = [];
function locksWith(store = memoryStore()): Locks {
  const locks = new Locks(store, { logger: false });
  opened.push(locks);
  return locks;
}
afterEach(() => Promise.all(opened.splice(0).map((locks) => locks.close())));

describe('the lease of a fence guard', () => {
  const check = (options?: Parameters<typeof fence.check>[1]) => inTransaction((client) => fence.check(pg(client), options));

  it('is that of the call', async () => {
    const locks = locksWith();
    const token = await locks.mutex('stock').using(async (lease) => {
      await check();
      return lease.fencingToken!;
    });
    await expect(check({ lease: leaseOf('stock', token - 1) })).rejects.toThrow(LockLostError);
  });

  it('may be passed, with another name in the table', async () => {
    const lease = await locksWith().mutex('passed').acquire();
    await check({ lease, key: 'sku-1' });
    await lease.release();
    await expect(check({ lease: leaseOf('sku-1', lease.fencingToken! - 1) })).rejects.toThrow(LockLostError);
    await expect(check({ lease: leaseOf('passed', 1) })).resolves.toBeUndefined();
  });

  it('must be there, and held, and have a token', async () => {
    await expect(check()).rejects.toThrow(LockConfigError);
    const lease = await locksWith().mutex('released').acquire();
    await lease.release();
    await expect(check({ lease })).rejects.toThrow(LockLostError);
    await expect(check({ lease: leaseOf('without', null) })).rejects.toThrow(UnsupportedPrimitiveError);
  });

  it('may be a multi-lease, of which each key counts', async () => {
    const locks = locksWith();
    const tokens = await locks.multiLock([locks.mutex('y'), locks.mutex('x')]).using(async ({ leases }) => {
      await check();
      return leases.map(({ fencingToken }) => fencingToken!);
    });
    for (const token of tokens) for (const key of ['x', 'y']) await check({ lease: leaseOf(key, Math.max(...tokens, token)) });
    await expect(check({ lease: leaseOf('x', 1) })).rejects.toThrow(LockLostError);
    await expect(check({ lease: leaseOf('y', 1) })).rejects.toThrow(LockLostError);
    await locks.multiLock([locks.mutex('x'), locks.mutex('y')]).using(async () => {
      await expect(check({ key: 'both' })).rejects.toThrow(LockConfigError);
    });
  });

  it('may be a reader’s, that only reads', async () => {
    const { read, write } = locksWith().readWriteLock('report');
    await write.using(() => check());
    await read.using(async () => {
      await check({ shared: true });
      await expect(check()).rejects.toThrow('{ shared: true }');
    });
  });

  it('is no semaphore’s, except one of a single permit', async () => {
    const locks = locksWith();
    await locks.semaphore('three', { permits: 3 }).using(() => expect(check()).rejects.toThrow('semaphore of 3 permits'));
    await locks.semaphore('one', { permits: 1 }).using(() => check());
  });
});

describe('options of a fence guard', () => {
  it.each([
    [{ dialect: 'oracle' }, 'dialect'],
    [{}, 'dialect'],
    [{ dialect: 'postgres', table: 'a; DROP TABLE b' }, 'table'],
    [{ dialect: 'postgres', table: 'a.b.c' }, 'table'],
    [{ dialect: 'postgres', table: 'x'.repeat(64) }, 'table'],
    [{ dialect: 'postgres', onOpenTransaction: 'ignore' }, 'onOpenTransaction'],
    [{ dialect: 'postgres', tabel: 'x' }, 'unknown option "tabel"'],
  ])('%j names what is wrong', (options, message) => {
    expect(() => fenceGuard(options as never)).toThrow(message);
  });

  it('may name a schema', async () => {
    await pool.query('CREATE SCHEMA "Other"');
    const other = fenceGuard({ dialect: 'postgres', table: 'Other.fence' });
    expect(other.ddl()).toContain('"Other"."fence"');
    await inTransaction(async (client) => {
      await other.migrate(pg(client));
      await other.check(pg(client), { lease: leaseOf('key', 1) });
    });
  });

  it('prune takes whole days only', async () => {
    for (const olderThan of ['', '30', '1 hour', '30 minutes', '0 days', '-3 days']) {
      await expect(inTransaction((client) => fence.prune(pg(client), { olderThan }))).rejects.toThrow(LockConfigError);
    }
  });
});

describe('a strict guard in a locked call', () => {
  const strict = fenceGuard({ dialect: 'postgres', table: TABLE, onOpenTransaction: 'throw' });

  it('fails the call, but never hides its own error', async () => {
    const stock = locksWith().mutex('stock');
    await inTransaction(async (client) => {
      await expect(stock.using(() => strict.check(pg(client)))).rejects.toThrow('released while a transaction was open');
      const failing = stock.using(async () => {
        await strict.check(pg(client));
        throw new Error('Sold out');
      });
      await expect(failing).rejects.toThrow('Sold out');
      await expect(stock.using(() => strict.check(pg(client)), { onLost: 'ignore' })).resolves.toBeUndefined();
    });
    await stock.using(() => inTransaction((client) => strict.check(pg(client))));
    expect(currentLease()).toBeUndefined();
  });

  it('says nothing of a lease that was lost', async () => {
    const events: unknown[] = [];
    const store = memoryStore();
    const locks = locksWith(store);
    locks.on('releasedEarly', (event) => events.push(event));
    const lease = await locks.acquire('lost');
    await inTransaction(async (client) => {
      await strict.check(pg(client), { lease });
      await store.mutex.release({ key: 'lost', owner: lease.owner, keepFor: 0 });
      await expect(lease.renew()).rejects.toThrow(LockLostError);
      expect(await lease.release()).toBe(false);
    });
    expect(events).toEqual([]);
  });

  it('says nothing of a connection that broke', async () => {
    const lease = await locksWith().mutex('broken').acquire();
    const client = new pgDriver.Client((await sharedPostgres()).connection);
    client.on('error', () => undefined);
    await client.connect();
    await client.query('BEGIN');
    await strict.check(pg(client), { lease });
    const ended = new Promise((resolve) => client.once('end', resolve));
    await pool.query('SELECT pg_terminate_backend($1)', [(client as unknown as { processID: number }).processID]);
    await ended;
    expect(await lease.release()).toBe(true);
  });
});

describe('helpers by shape', () => {
  // Their libraries are not installed here: these stand-ins have their shape.
  const plain = fenceGuard({ dialect: 'postgres' });
  const check = { lease: leaseOf('stock', 7) };

  it('mikroOrm: question marks, in the transaction of the entity manager', async () => {
    const asked: unknown[][] = [];
    let isInTransaction = true;
    const em = { isInTransaction: () => isInTransaction, execute: async (...query: unknown[]) => (asked.push(query), [{ token: '7' }]) };
    await plain.check(mikroOrm(em), check);
    expect(asked).toEqual([[expect.stringContaining('VALUES (?, CAST(? AS bigint))'), ['stock', '7']]]);
    isInTransaction = false;
    expect(() => mikroOrm(em)).toThrow('without a transaction');
  });

  it('sequelize: replacements, with the transaction', async () => {
    const asked: unknown[][] = [];
    const transaction: { finished?: string } = {};
    const client = { query: async (...query: unknown[]) => (asked.push(query), [[{ token: '7' }], 1]) };
    const run = sequelize(client, transaction);
    await plain.check(run, check);
    expect(asked).toEqual([
      [expect.stringContaining('VALUES (?, CAST(? AS bigint))'), { replacements: ['stock', '7'], transaction, raw: true }],
    ]);
    transaction.finished = 'commit';
    expect(run.isOpen?.()).toBe(false);
    expect(() => sequelize(client, transaction)).toThrow('no open transaction');
    const missing = Object.assign(new Error('relation "lock_fence" does not exist'), { parent: { code: '42P01' } });
    await expect(plain.check(sequelize({ query: () => Promise.reject(missing) }, {}), check)).rejects.toThrow('fence.migrate');
  });
});
