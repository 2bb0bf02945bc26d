import { Inject, Injectable, Module } from '@nestjs/common';
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import { DataSource } from 'typeorm';
import { boot } from '../nest/boot.js';
import { ClsStockService } from './cls-stock.js';
import { key, lockAmong, LONG, place, way } from './place.js';
import { applesIn, logLocks, openDatabase, provesTransactions, take } from './transactions.js';

/** An app with this database and this service. */
async function bootWith(database: DataSource, service: new (...args: never[]) => object) {
  @Module({ providers: [{ provide: DataSource, useValue: database }], exports: [DataSource] })
  class DatabaseModule {}
  const adapter = new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource });
  const plugins = [new ClsPluginTransactional({ imports: [DatabaseModule], adapter })];
  return boot({ imports: [ClsModule.forRoot({ plugins })], providers: [service] });
}

place('Transactions', '@Transactional of @nestjs-cls/transactional', (order) => {
  provesTransactions(order, async (database) => {
    const keys: unknown[] = [];
    @Injectable()
    class Stock {
      constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

      @lockAmong(order, { value: 'stock', ...LONG }, Transactional())
      async take(units: number) {
        keys.push(key(), this.host.isTransactionActive());
        await take(this.host.tx, units);
        return units;
      }
    }
    const booted = await bootWith(database, Stock);
    return { booted, database, keys, take: (units) => booted.get(Stock).take(units), end: () => database.destroy() };
  });
});

way('Transactions', 'a locked method that joins the transaction of its caller', () => {
  async function logOf(method: 'reduce' | 'order' | 'orderSafely', calls: number) {
    const log: string[] = [];
    const database = await openDatabase(log);
    const booted = await bootWith(database, ClsStockService);
    logLocks(booted, log);
    await Promise.all(Array.from({ length: calls }, () => booted.get(ClsStockService)[method]('apple')));
    expect(await applesIn(database)).toBe(20 - calls);
    await database.destroy();
    return log;
  }
  const inOrder = ['acquired', 'BEGIN', 'COMMIT', 'released'];

  it('is released before the commit: the lock belongs around the outer transaction', async () => {
    expect(await logOf('order', 1)).toEqual(['BEGIN', 'acquired', 'released', 'COMMIT']);
  });

  it('enters the lock of its caller again, which lasts until after the commit', async () => {
    expect(await logOf('orderSafely', 3)).toEqual([...inOrder, ...inOrder, ...inOrder]);
  });

  it('has a transaction of its own where its caller has none', async () => {
    expect(await logOf('reduce', 3)).toEqual([...inOrder, ...inOrder, ...inOrder]);
  });
});
