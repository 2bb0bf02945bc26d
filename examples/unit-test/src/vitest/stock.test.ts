import { Test } from '@nestjs/testing';
import { StoreError } from 'nestjs-distributed-lock';
import { DistributedLockTestingModule, LockProbe } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/vitest';
import { expect, it } from 'vitest';
import { StockService } from '../stock.service.js';

expect.extend(lockMatchers);

it('sells to one buyer at a time, and nothing while its locks fail', async () => {
  const locksInMemory = DistributedLockTestingModule.forRoot();
  const module = await Test.createTestingModule({ imports: [locksInMemory], providers: [StockService] }).compile();
  const [stock, locks] = [module.get(StockService), module.get(LockProbe)];
  expect(await Promise.all([1, 2, 3].map(() => stock.buy('apple')))).toEqual([9, 8, 7]);
  expect(locks).toHaveLocked('stock-apple-locks', { by: 'StockService.buy', times: 3 });
  expect(locks).not.toHaveOverlapped('stock-apple-locks');
  locks.faults.refuse('acquire');
  await expect(stock.buy('apple')).rejects.toThrow(StoreError);
  expect(stock.shelves.get('apple')).toBe(7);
  await module.close();
});
