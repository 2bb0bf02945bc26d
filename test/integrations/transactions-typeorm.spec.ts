import { Inject, Injectable } from '@nestjs/common';
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
import { key, lockAmong, LONG, place, way } from './place.js';
import { applesIn, logLocks, openDatabase, provesTransactions, take } from './transactions.js';
import { TypeOrmStockService } from './typeorm-stock.js';

beforeAll(() => initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE }));

place('Transactions', '@Transactional of typeorm-transactional', (order) => {
  provesTransactions(order, async (opened) => {
    const keys: unknown[] = [];
    @Injectable()
    class Stock {
      constructor(@Inject(DataSource) private readonly database: DataSource) {}

      @lockAmong(order, { value: 'stock', ...LONG }, Transactional())
      async take(units: number) {
        keys.push(key(), this.database.manager.queryRunner?.isTransactionActive);
        await take(this.database, units);
        return units;
      }
    }
    const database = addTransactionalDataSource(opened);
    const booted = await boot({ providers: [Stock, { provide: DataSource, useValue: database }] });
    return {
      booted,
      database,
      keys,
      take: (units) => booted.get(Stock).take(units),
      async end() {
        deleteDataSourceByName('default');
        await database.destroy();
      },
    };
  });
});

way('Transactions', 'hooks of typeorm-transactional in a locked method', () => {
  it('run after the commit, and the lock is released', async () => {
    const log: string[] = [];
    const database = addTransactionalDataSource(await openDatabase(log));
    try {
      const booted = await boot({ providers: [TypeOrmStockService, { provide: DataSource, useValue: database }] });
      logLocks(booted, log);
      await Promise.all([1, 2, 3].map(() => booted.get(TypeOrmStockService).reduce('apple')));
      await eventually(() => booted.get(TypeOrmStockService).notified.length === 3);
      expect(await applesIn(database)).toBe(17);
      expect(log).toEqual(Array(3).fill(['acquired', 'BEGIN', 'COMMIT', 'released']).flat());
    } finally {
      deleteDataSourceByName('default');
      await database.destroy();
    }
  });
});
