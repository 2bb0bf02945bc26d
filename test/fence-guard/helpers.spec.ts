import { LockConfigError, LockLostError } from 'nestjs-distributed-lock/core';
import { fenceGuard, FencedError } from 'nestjs-distributed-lock/fence-guard';
import { clients, type Client } from './clients.js';
import { leaseOf } from './lease-of.js';

describe.each(clients)('a fence guard by $name', ({ name, dialect, open }) => {
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
  const seen = (key: string) =>
    client.transaction((tx) =>
      client.runOf(tx)(`SELECT token FROM ${table} WHERE lock_key = ${dialect === 'postgres' ? '$1' : '?'}`, [key]),
    );

  it('lets the first holder pass, the same again, and each later one', async () => {
    for (const token of [5, 5, 6, 2 ** 53 - 1, 2 ** 53 - 1]) await check('grows', token);
    expect(Number(((await seen('grows'))[0] as { token: unknown }).token)).toBe(2 ** 53 - 1);
  });

  it('lets the same lease check twice in a transaction', async () => {
    const twice = client.transaction(async (tx) => {
      for (let check = 0; check < 2; check++) await fence.check(client.runOf(tx), { lease: leaseOf('twice', 5) });
    });
    await expect(twice).resolves.toBeUndefined();
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
    await check('digits', 9);
    await check('digits', 10);
    await expect(check('digits', 9)).rejects.toThrow(LockLostError);
  });

  it.each(['it\'s "quoted" `so`; DROP TABLE x --', 'case', 'CASE', 'case ', 'Straße ☃ 😀', '$1 ? :name', 'x'.repeat(512)])(
    'takes the key %s for itself',
    async (key) => {
      await check(key, 7);
      await expect(check(key, 6)).rejects.toThrow(LockLostError);
    },
  );

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

  it('makes its table again without harm, and prunes only old rows', async () => {
    await check('kept', 1);
    await client.transaction((tx) => fence.migrate(client.runOf(tx)));
    await client.transaction((tx) => fence.prune(client.runOf(tx), { olderThan: '1 day' }));
    expect(await seen('kept')).toHaveLength(1);
    const longAgo = { postgres: "now() - interval '3 days'", mysql: 'NOW() - INTERVAL 3 DAY', sqlite: "datetime('now', '-3 days')" };
    await client.transaction((tx) => client.runOf(tx)(`UPDATE ${table} SET at = ${longAgo[dialect]} WHERE lock_key <> 'kept'`, []));
    await check('case', 7);
    await client.transaction((tx) => fence.prune(client.runOf(tx), { olderThan: '2 days' }));
    const left = await client.transaction((tx) => client.runOf(tx)(`SELECT count(*) AS count FROM ${table}`, []));
    expect(Number((left[0] as { count: unknown }).count)).toBe(2);
  });
});
