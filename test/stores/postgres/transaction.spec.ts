import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { lockInTransaction, type PostgresQuery, tryLockInTransaction } from 'nestjs-distributed-lock/postgres';
import { eventually } from '../../support/eventually.js';
import { newKey, usePostgres } from './setting.js';

const setting = usePostgres();
let key: string;
beforeEach(() => (key = newKey()));
async function begin(level = 'READ COMMITTED'): Promise<PostgresQuery & { client: PoolClient }> {
  const client = await setting.pool().connect();
  setting.closes(() => client.query('ROLLBACK').finally(() => client.release()));
  await client.query(`BEGIN ISOLATION LEVEL ${level}`);
  let last: Promise<unknown> = Promise.resolve();
  // One at a time, in their order: pg's own queue of queries is deprecated.
  const query: PostgresQuery = (text, values) => {
    const next = last.then(() => client.query(text, values));
    last = next.catch(() => undefined);
    return next;
  };
  return Object.assign(query, { client });
}
/** Other files have databases of their own on this server. */
const ownLocks = `FROM pg_locks JOIN pg_database d ON d.oid = database WHERE locktype = 'advisory' AND datname = current_database()`;
const waiting = async () => (await setting.sql(`SELECT ${ownLocks} AND NOT granted`)).length;
const held = async () => (await setting.sql(`SELECT ${ownLocks} AND granted`)).length;

describe('a lock in a transaction', () => {
  it.each(['COMMIT', 'ROLLBACK'])('is released by %s, and given to the one that waits', async (end) => {
    const [one, other] = [await begin(), await begin()];
    await lockInTransaction(one, key);
    const waits = lockInTransaction(other, key);
    await eventually(async () => (await waiting()) === 1);
    await one.client.query(end);
    await waits;
    expect(await held()).toBe(1);
    await other.client.query('COMMIT');
    expect(await held()).toBe(0);
  });

  it('may be taken again by its transaction', async () => {
    const one = await begin();
    await lockInTransaction(one, key);
    await lockInTransaction(one, key, { waitTimeout: 0 });
    expect(await tryLockInTransaction(one, key)).toBe(true);
  });

  it('that is not free in time is a LockTimeoutError, and the transaction goes on', async () => {
    const [one, other] = [await begin(), await begin()];
    await lockInTransaction(one, key);
    await other.client.query(`SET lock_timeout = '7s'`);
    for (const waitTimeout of [0, 50]) {
      const error = await lockInTransaction(other, key, { waitTimeout }).catch((cause: unknown) => cause);
      expect(error).toMatchObject({ name: 'LockTimeoutError', key });
    }
    expect(await tryLockInTransaction(other, key)).toBe(false);
    await lockInTransaction(other, `${key}:other`, { waitTimeout: 60_000 });
    expect((await other.client.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '7s' }]);
    await one.client.query('COMMIT');
    await lockInTransaction(other, key, { waitTimeout: 60_000 });
    expect((await other.client.query('SHOW lock_timeout')).rows).toEqual([{ lock_timeout: '7s' }]);
  });

  it.each([100, undefined])('is not lost by another one that is not free in time, with waitTimeout %p', async (waitTimeout) => {
    const [one, other] = [await begin(), await begin()];
    await lockInTransaction(other, `${key}:taken`);
    await one.client.query(`SET LOCAL lock_timeout = '100ms'`);
    const lock = (name: string) => lockInTransaction(one, `${key}:${name}`, { waitTimeout });
    const outcomes = await Promise.allSettled(['first', 'taken', 'second', 'taken', 'third'].map(lock));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled']);
    expect(await held()).toBe(4);
    for (const name of ['first', 'second', 'third']) expect(await tryLockInTransaction(other, `${key}:${name}`)).toBe(false);
  });

  it('may be shared, and then excludes those that are not', async () => {
    const [one, other, third] = [await begin(), await begin(), await begin()];
    await lockInTransaction(one, key, { shared: true });
    expect(await tryLockInTransaction(other, key, { shared: true })).toBe(true);
    expect(await tryLockInTransaction(third, key)).toBe(false);
    await expect(lockInTransaction(third, key, { waitTimeout: 20 })).rejects.toMatchObject({ name: 'LockTimeoutError' });
    await lockInTransaction(third, key, { shared: true, waitTimeout: 60_000 });
  });

  it('has the number of its namespace and key', async () => {
    const one = await begin();
    await lockInTransaction(one, 'order:42', { namespace: 'shop:' });
    const number = createHash('sha256').update('shop:order:42').digest().readBigInt64BE();
    const locks = `SELECT ((classid::bigint << 32) | objid::bigint)::text AS number ${ownLocks}`;
    expect(await setting.sql(locks)).toEqual([{ number: String(number) }]);
  });

  it('without a transaction is refused: it would be gone at once', async () => {
    const pool = setting.pool();
    const query: PostgresQuery = (text, values) => pool.query(text, values);
    for (const lock of [lockInTransaction, tryLockInTransaction]) {
      await expect(lock(query, key)).rejects.toMatchObject({ name: 'LockConfigError', message: expect.stringMatching(/no transaction/) });
    }
  });

  it('that is part of a deadlock fails, and the transaction with it', async () => {
    const [one, other] = [await begin(), await begin()];
    await one.client.query(`SET LOCAL deadlock_timeout = '20ms'`);
    await lockInTransaction(one, key);
    await lockInTransaction(other, `${key}:other`);
    const waits = lockInTransaction(other, key);
    await eventually(async () => (await waiting()) === 1);
    await expect(lockInTransaction(one, `${key}:other`)).rejects.toMatchObject({
      name: 'StoreError',
      key: `${key}:other`,
      transient: true,
    });
    await one.client.query('ROLLBACK');
    await waits;
  });

  it.each<[string, object]>([
    ['', {}],
    ['key', { waitTimeout: -1 }],
    ['key', { waitTimeout: Infinity }],
    ['key', { shared: 'yes' }],
    ['key', { keyTimeout: 5_000 }],
  ])('%j with %j is refused', async (name, options) => {
    const query = () => Promise.reject(new Error('it should not be asked'));
    await expect(lockInTransaction(query, name, options)).rejects.toMatchObject({ name: 'LockConfigError' });
  });
});
