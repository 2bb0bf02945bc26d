// What docs/multi-lock.md says, on a real server.
import { Locks } from 'nestjs-distributed-lock/core';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import type * as Bank from './multi-lock.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

describe('the bank of docs/multi-lock.md', () => {
  let bank: typeof Bank;
  const archive = new Locks(memoryStore(), { logger: false });
  afterAll(() => Promise.all([bank.locks.close(), archive.close()]));
  const setting = useRedisOfEnv();

  beforeAll(async () => {
    bank = await import('./multi-lock.js');
  });

  it('loses no money between accounts that many move at once', async () => {
    const accounts = ['anna', 'ben', 'cleo'];
    for (const account of accounts) bank.balances.set(account, 100);
    const transfers = Array.from({ length: 30 }, (_, index) =>
      bank.transfer(accounts[index % 3]!, accounts[(index + 1 + (index % 2)) % 3]!, 1),
    );
    await Promise.all(transfers);
    expect([...bank.balances.values()].reduce((sum, balance) => sum + balance, 0)).toBe(300);
    expect(await setting.redis.keys('bank:*')).toEqual([]);
  });

  it('audits an account with what it takes of two stores, or not at all', async () => {
    const keys: string[] = [];
    expect(await bank.audit(archive, 'anna', async ({ key, leases }) => void keys.push(key, String(leases.length)))).toBe(true);
    expect(keys).toEqual(['bank:anna, bank:rates, ledger', '3']);
    await archive.using('ledger', async () => {
      expect(await bank.audit(archive, 'anna', async () => undefined)).toBe(true); // the call chain holds the ledger
    });
    const stranger = await archive.acquire('ledger');
    expect(await bank.audit(archive, 'anna', async () => undefined)).toBe(false);
    await stranger.release();
  });
});
