import { Inject, Injectable } from '@nestjs/common';
import { Transactional, TransactionHost } from '@nestjs-cls/transactional';
import type { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { drizzle as openDrizzle } from 'drizzle-orm/node-postgres';
import { currentLease, DistributedLock, LockLostError } from 'nestjs-distributed-lock';
import { Fenced, fenceGuard, typeorm } from 'nestjs-distributed-lock/fence-guard';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import {
  addTransactionalDataSource,
  deleteDataSourceByName,
  initializeTransactionalContext,
  StorageDriver,
  Transactional as TypeOrmTransactional,
} from 'typeorm-transactional';
import { boot } from '../nest/boot.js';
import { Log } from '../nest/log.js';
import { refusalOf } from '../nest/refusal.js';
import { sharedPostgres } from '../support/shared-server.js';
import { clsModule } from './cls-stock.js';
import { DrizzleStockService, FencedStockService, StockService, up } from './fence-guard-stock.js';

let database: DataSource;
beforeAll(async () => {
  const { connection } = await sharedPostgres();
  database = await new DataSource({ type: 'postgres', ...connection, username: connection.user }).initialize();
  await database.query('CREATE TABLE stock (sku text PRIMARY KEY, units int NOT NULL)');
  await up(database);
});
beforeEach(async () => {
  await database.query('DELETE FROM lock_fence');
  await database.query(`INSERT INTO stock VALUES ('apple', 20) ON CONFLICT (sku) DO UPDATE SET units = 20`);
});
afterAll(() => database.destroy());

async function apples(): Promise<number> {
  const [row] = await database.query<{ units: number }[]>(`SELECT units FROM stock WHERE sku = 'apple'`);
  return row!.units;
}

/** As if a later holder had been there: on another instance, after this one's lease was lost. */
async function letALaterHolderPass(): Promise<void> {
  await database.query('UPDATE lock_fence SET token = token + 1000000000');
}

const fence = fenceGuard({ dialect: 'postgres' });

describe('a guarded transaction of a locked method', () => {
  it.each([
    [
      'opened in the method',
      async () => (await boot({ providers: [StockService, { provide: DataSource, useValue: database }] })).get(StockService),
    ],
    [
      'by @Transactional and @Fenced',
      async () => (await boot({ imports: [clsModule(database)], providers: [FencedStockService] })).get(FencedStockService),
    ],
  ])('is committed for the holder, and rolled back for a late one: %s', async (_, open) => {
    const stock = await open();
    await Promise.all([1, 2, 3].map(() => stock.reduce('apple')));
    expect(await apples()).toBe(17);
    await letALaterHolderPass();
    await expect(stock.reduce('apple')).rejects.toThrow(LockLostError);
    expect(await apples()).toBe(17);
  });

  it('works with fence.transaction', async () => {
    const pool = new Pool((await sharedPostgres()).connection);
    try {
      const service = new DrizzleStockService(openDrizzle(pool));
      const stock = (await boot({ providers: [{ provide: DrizzleStockService, useValue: service }] })).get(DrizzleStockService);
      await stock.reduce('apple');
      await letALaterHolderPass();
      await expect(stock.reduce('apple')).rejects.toThrow(LockLostError);
      expect(await apples()).toBe(19);
    } finally {
      await pool.end();
    }
  });
});

describe('@Fenced()', () => {
  it('checks in the transaction of typeorm-transactional', async () => {
    initializeTransactionalContext({ storageDriver: StorageDriver.ASYNC_LOCAL_STORAGE });
    const transactional = addTransactionalDataSource(await new DataSource(database.options).initialize());
    @Injectable()
    class Stock {
      @DistributedLock({ value: 'stock' })
      @TypeOrmTransactional()
      @Fenced(fence, () => typeorm(transactional.manager))
      async reduce(sku: string) {
        await transactional.query('UPDATE stock SET units = units - 1 WHERE sku = $1', [sku]);
        return currentLease()?.key;
      }
    }
    try {
      const stock = (await boot({ providers: [Stock] })).get(Stock);
      expect(await stock.reduce('apple')).toBe('stock-locks');
      await letALaterHolderPass();
      await expect(stock.reduce('apple')).rejects.toThrow(LockLostError);
      expect(await apples()).toBe(19);
    } finally {
      deleteDataSourceByName('default');
      await transactional.destroy();
    }
  });

  it('is refused above the lock when the class is defined, also where copies exchange another version of what they share', () => {
    jest.isolateModules(() => {
      const processWide = '../../lib/core/util/process-wide.js';
      jest.doMock(processWide, () => ({ ...jest.requireActual<object>(processWide), EXCHANGED: 2 }));
      const { DistributedLock: OtherLock } = jest.requireActual<{ DistributedLock: typeof DistributedLock }>('nestjs-distributed-lock');
      const other = jest.requireActual<{ Fenced: typeof Fenced }>('nestjs-distributed-lock/fence-guard');
      jest.dontMock(processWide);
      class Stock {
        @OtherLock({ value: 'stock' })
        async reduce() {}
      }
      const descriptor = Object.getOwnPropertyDescriptor(Stock.prototype, 'reduce') as TypedPropertyDescriptor<() => Promise<void>>;
      const decorate = other.Fenced(fence, () => typeorm(database.manager));
      const message = refusalOf(() => decorate(Stock.prototype, 'reduce', descriptor));
      expect(message).toContain('@Fenced() on Stock.reduce: the lock is below it');
    });
  });

  it('is refused above the transaction, and without a lock, by the first call', async () => {
    @Injectable()
    class Stock {
      constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

      @DistributedLock({ value: 'stock' })
      @Fenced<Stock>(fence, (self) => typeorm(self.host.tx))
      @Transactional()
      async outside() {}

      @Transactional()
      @Fenced<Stock>(fence, (self) => typeorm(self.host.tx))
      async unlocked() {}
    }
    const stock = (await boot({ imports: [clsModule(database)], providers: [Stock] })).get(Stock);
    await expect(stock.outside()).rejects.toThrow('a manager without an active transaction');
    await expect(stock.unlocked()).rejects.toThrow('found no lease');
  });

  it('checks first, and keeps the name, the arguments, the result and the metadata of the method', async () => {
    const log: string[] = [];
    const Mark: MethodDecorator = (_prototype, _name, descriptor) => Reflect.defineMetadata('mark', 'there', descriptor.value as object);
    @Injectable()
    class Stock {
      readonly fence = fence;

      @DistributedLock({ value: 'stock' })
      @Fenced<Stock>((self) => ({ ...self.fence, check: async () => void log.push('checked') }), () => async () => [])
      @Mark
      async sum(a: number, b: number) {
        log.push('ran');
        return [this instanceof Stock, a + b];
      }
    }
    const stock = (await boot({ providers: [Stock] })).get(Stock);
    expect(await stock.sum(1, 2)).toEqual([true, 3]);
    expect(log).toEqual(['checked', 'ran']);
    expect(Reflect.getMetadata('mark', Stock.prototype.sum)).toBe('there');
    expect(Stock.prototype.sum.name).toBe('sum');
  });
});

it('a lock below the transaction, with a fence guard, is a warning', async () => {
  @Injectable()
  class Stock {
    constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

    @Transactional()
    @DistributedLock({ value: 'stock' })
    @Fenced<Stock>(fence, (self) => typeorm(self.host.tx))
    async reduce() {}
  }
  const logger = new Log();
  const { get } = await boot({ imports: [clsModule(database)], providers: [Stock] }, { logger, silence: ['NDL_SHUTDOWN_HOOKS'] });
  await get(Stock).reduce();
  const warning = /^Stock\.reduce: "stock-locks" was released while a transaction was open.* \[NDL_RELEASED_EARLY\]/;
  expect(logger.warnings).toEqual([expect.stringMatching(warning)]);
});
