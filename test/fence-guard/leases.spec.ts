// The guard with real locks: which leases it takes, and what it says about a release before the commit.
import pgDriver from 'pg';
import {
  LockConfigError,
  Locks,
  LockLostError,
  UnsupportedPrimitiveError,
  currentLease,
  type LockEvents,
  type LocksOptions,
} from 'nestjs-distributed-lock/core';
import { fenceGuard, pg } from 'nestjs-distributed-lock/fence-guard';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { sharedPostgres } from '../support/shared-server.js';
import { clients, type Client } from './clients.js';
import { leaseOf } from './lease-of.js';

const TABLE = 'fence_of_leases';
const fence = fenceGuard({ dialect: 'postgres', table: TABLE });

let pool: pgDriver.Pool;
beforeAll(async () => {
  pool = new pgDriver.Pool((await sharedPostgres()).connection);
  const client = await pool.connect();
  await fence.migrate(pg(client));
  client.release();
});
afterAll(() => pool.end());

async function inTransaction<T>(work: (client: pgDriver.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

const opened: Locks[] = [];
function locksWith(options: LocksOptions = {}): Locks {
  const locks = new Locks(memoryStore(), { logger: false, ...options });
  opened.push(locks);
  return locks;
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
});

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

  it.each(['', '30', '1 hour', '30 minutes', '0 days', '-3 days'])('prune refuses %j', async (olderThan) => {
    await expect(inTransaction((client) => fence.prune(pg(client), { olderThan }))).rejects.toThrow(LockConfigError);
  });

  it('makes one table, however many make it at the same time', async () => {
    const many = fenceGuard({ dialect: 'postgres', table: 'made_by_many' });
    const making = Array.from({ length: 8 }, async () => {
      const client = await pool.connect();
      await many.migrate(pg(client)).finally(() => client.release());
    });
    await expect(Promise.all(making)).resolves.toHaveLength(8);
  });
});

describe.each(clients)('a release before the commit, by $name', ({ name, dialect, knowsTheEnd, open }) => {
  const table = `early_${name.replaceAll(/\W/g, '_').toLowerCase()}`;
  const guard = fenceGuard({ dialect, table });
  const strict = fenceGuard({ dialect, table, onOpenTransaction: 'throw' });
  let client: Client;
  beforeAll(async () => {
    client = await open();
    await client.transaction((tx) => guard.migrate(client.runOf(tx)));
  });
  afterAll(() => client.close());

  function listening() {
    const warnings: string[] = [];
    const events: LockEvents['releasedEarly'][] = [];
    const locks = locksWith({ logger: { warn: (line) => warnings.push(line), error: (line) => warnings.push(line) } });
    locks.on('releasedEarly', (event) => events.push(event));
    return { locks, warnings, events };
  }

  it(`is ${knowsTheEnd ? '' : 'not '}noticed`, async () => {
    const { locks, warnings, events } = listening();
    await client.transaction(async (tx) => {
      for (let call = 0; call < 3; call++) {
        await locks.mutex('stock').using(() => guard.check(client.runOf(tx)), { label: 'Stock.reduce' });
      }
    });
    expect(events.map(({ key, kind, label }) => ({ key, kind, label }))).toEqual(
      Array(knowsTheEnd ? 3 : 0).fill({ key: 'stock', kind: 'mutex', label: 'Stock.reduce' }),
    );
    expect(warnings).toHaveLength(knowsTheEnd ? 1 : 0);
    if (knowsTheEnd)
      expect(warnings[0]).toMatch(/^Stock\.reduce: "stock" was released while a transaction was open.*guarded.*leases\.spec.*released/s);
  });

  it('is noticed in fence.transaction', async () => {
    const { locks, events } = listening();
    const lease = await locks.mutex('stock').acquire();
    await guard.transaction(
      client.transaction,
      (tx) => client.runOf(tx),
      () => lease.release(),
      { lease },
    );
    expect(events).toHaveLength(1);
    expect(events[0]!.guardedAt).toContain('leases.spec');
    expect(
      await guard.transaction(
        client.transaction,
        (tx) => client.runOf(tx),
        () => Promise.resolve(7),
        { lease: leaseOf('x', 1) },
      ),
    ).toBe(7);
  });

  it('is no false alarm when the commit or rollback comes first, or the call is nested', async () => {
    const { locks, warnings, events } = listening();
    const stock = locks.mutex('stock');
    const checked = () => client.transaction((tx) => guard.check(client.runOf(tx)));
    await stock.using(checked);
    await stock.using(async () => {
      await checked();
      await checked();
      await guard.transaction(
        client.transaction,
        (tx) => client.runOf(tx),
        () => Promise.resolve(),
      );
    });
    const failed = stock.using(() =>
      client.transaction(async (tx) => {
        await guard.check(client.runOf(tx));
        throw new Error('Sold out');
      }),
    );
    await expect(failed).rejects.toThrow('Sold out');
    await stock.using(() => client.transaction((tx) => stock.using(() => guard.check(client.runOf(tx))))); // enters its own key again
    // The connection goes back to the pool, and has another transaction open at the release.
    const lease = await stock.acquire();
    await client.transaction((tx) => guard.check(client.runOf(tx), { lease }));
    // Not on SQLite, where TypeORM has one query runner for all: it cannot tell the two apart.
    if (dialect === 'sqlite') await lease.release();
    else await client.transaction(async () => void (await lease.release()));
    expect([warnings, events]).toEqual([[], []]);
  });

  it('rejects the call if the guard is strict, and the key is free all the same', async () => {
    const { locks } = listening();
    const stock = locks.mutex('stock');
    const lease = await stock.acquire();
    const fault = await strict
      .transaction(
        client.transaction,
        (tx) => client.runOf(tx),
        () => lease.release(),
        { lease },
      )
      .catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(LockConfigError);
    expect(await stock.tryAcquire()).not.toBeNull();
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
    const locks = locksWith();
    locks.on('releasedEarly', (event) => events.push(event));
    const lease = await locks.mutex('lost').acquire({ keyTimeout: 1_000, renew: false });
    await inTransaction(async (client) => {
      await strict.check(pg(client), { lease });
      await new Promise((resolve) => lease.signal.addEventListener('abort', resolve));
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
