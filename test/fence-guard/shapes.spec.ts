// Helpers whose libraries are not installed here: these stand-ins have their shape.
import { mikroOrm, prisma, sequelize, fenceGuard } from 'nestjs-distributed-lock/fence-guard';
import { leaseOf } from './lease-of.js';

const fence = fenceGuard({ dialect: 'postgres' });
const check = { lease: leaseOf('stock', 7) };

describe('helpers by shape', () => {
  it('prisma: values one by one, of a transaction only', async () => {
    const asked: unknown[][] = [];
    const tx = { $queryRawUnsafe: async (...query: unknown[]) => (asked.push(query), [{ token: 7n }]) };
    await fence.check(prisma(tx), check);
    expect(asked).toEqual([[expect.stringContaining('VALUES ($1, CAST($2 AS bigint))'), 'stock', '7']]);
    expect(() => prisma({ ...tx, $transaction: () => undefined } as typeof tx)).toThrow('the client in place of its transaction');
  });

  it('mikroOrm: question marks, in the transaction of the entity manager', async () => {
    const asked: unknown[][] = [];
    let isInTransaction = true;
    const em = { isInTransaction: () => isInTransaction, execute: async (...query: unknown[]) => (asked.push(query), [{ token: '7' }]) };
    await fence.check(mikroOrm(em), check);
    expect(asked).toEqual([[expect.stringContaining('VALUES (?, CAST(? AS bigint))'), ['stock', '7']]]);
    isInTransaction = false;
    expect(() => mikroOrm(em)).toThrow('without a transaction');
  });

  it('sequelize: replacements, with the transaction', async () => {
    const asked: unknown[][] = [];
    const transaction: { finished?: string } = {};
    const client = { query: async (...query: unknown[]) => (asked.push(query), [[{ token: '7' }], 1]) };
    const run = sequelize(client, transaction);
    await fence.check(run, check);
    expect(asked).toEqual([
      [expect.stringContaining('VALUES (?, CAST(? AS bigint))'), { replacements: ['stock', '7'], transaction, raw: true }],
    ]);
    transaction.finished = 'commit';
    expect(run.isOpen?.()).toBe(false);
    expect(() => sequelize(client, transaction)).toThrow('no open transaction');
    const missing = Object.assign(new Error('relation "lock_fence" does not exist'), { parent: { code: '42P01' } });
    const checked = fence.check(sequelize({ query: () => Promise.reject(missing) }, {}), check);
    await expect(checked).rejects.toThrow('fence.migrate');
  });
});
