import { Inject, Injectable } from '@nestjs/common';
import { currentLease } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  StorageDriver,
  Transactional,
} from 'typeorm-transactional';
import { boot } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { lockAmong, place, way } from './place.js';
import { applesIn, logLocks, openDatabase, take } from './transactions.js';
import { TypeOrmStockService } from './typeorm-stock.js';

beforeAll(() => initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE }));

place('Transactions', '@Transactional of typeorm-transactional', (order) => {
  const log: string[] = [];
  const keys: unknown[] = [];
  let database: DataSource;

  @Injectable()
  class Stock {
    constructor(@Inject(DataSource) private readonly database: DataSource) {}

    @lockAmong(order, { value: 'stock', keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 2 }, Transactional())
    async take(units: number) {
      keys.push(currentLease()?.key, this.database.manager.queryRunner?.isTransactionActive);
      await take(this.database, units);
      return units;
    }
  }

  async function bootStock() {
    database = addTransactionalDataSource(await openDatabase(log));
    const booted = await boot({ providers: [Stock, { provide: DataSource, useValue: database }] });
    logLocks(booted, log);
    return booted;
  }
  beforeEach(() => [log, keys].forEach((list) => list.splice(0)));
  afterEach(async () => {
    deleteDataSourceByName('default');
    await database.destroy();
  });

  it('runs the body once, under one lock and in one transaction', async () => {
    const { get, acquired } = await bootStock();
    expect(await get(Stock).take(2)).toBe(2);
    expect([keys, acquired, await applesIn(database)]).toEqual([['stock-locks', true], ['stock-locks'], 18]);
  });

  it('is rolled back when the body fails, whose error comes through, and the lock is free', async () => {
    const { get, acquired, isTaken } = await bootStock();
    await expect(get(Stock).take(-1)).rejects.toThrow('Nothing can be given back.');
    expect([keys, acquired, await isTaken('stock-locks')]).toEqual([['stock-locks', true], ['stock-locks'], false]);
    expect(await applesIn(database)).toBe(20);
    expect(log).toContain('ROLLBACK');
  });

  if (order === 'above') {
    it('is released after the commit, so that the next caller reads what was committed', async () => {
      const { get } = await bootStock();
      await Promise.all(Array.from({ length: 6 }, () => get(Stock).take(1)));
      expect(await applesIn(database)).toBe(14);
      expect(log).toEqual(Array(6).fill(['acquired', 'BEGIN', 'COMMIT', 'released']).flat());
    });
  } else {
    it('is released before the commit: the next caller may read what was there before', async () => {
      const { get } = await bootStock();
      await get(Stock).take(1);
      expect(log).toEqual(['BEGIN', 'acquired', 'released', 'COMMIT']);
    });
  }
});

way('Transactions', 'hooks of typeorm-transactional in a locked method', () => {
  it('run after the commit, and the lock is released', async () => {
    const log: string[] = [];
    const database = addTransactionalDataSource(await openDatabase(log));
    try {
      const booted = await boot({ providers: [TypeOrmStockService, { provide: DataSource, useValue: database }] });
      logLocks(booted, log);
      await Promise.all([1, 2, 3].map(() => booted.get(TypeOrmStockService).reduce('apple')));
      await eventually(() => booted.get(TypeOrmStockService).told.length === 3);
      expect(await applesIn(database)).toBe(17);
      expect(log).toEqual(Array(3).fill(['acquired', 'BEGIN', 'COMMIT', 'released']).flat());
    } finally {
      deleteDataSourceByName('default');
      await database.destroy();
    }
  });
});
