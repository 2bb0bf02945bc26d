import { Inject, Injectable, Module } from '@nestjs/common';
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import { currentLease } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';
import { boot } from '../nest/boot.js';
import { ClsStockService } from './cls-stock.js';
import { lockAmong, place, way } from './place.js';
import { applesIn, logLocks, openDatabase, take } from './transactions.js';

/** An app with this database and this service. */
async function bootWith(database: DataSource, service: new (...args: never[]) => object) {
  @Module({ providers: [{ provide: DataSource, useValue: database }], exports: [DataSource] })
  class DatabaseModule {}
  const adapter = new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource });
  const plugins = [new ClsPluginTransactional({ imports: [DatabaseModule], adapter })];
  return boot({ imports: [ClsModule.forRoot({ plugins })], providers: [service] });
}

place('Transactions', '@Transactional of @nestjs-cls/transactional', (order) => {
  const log: string[] = [];
  const keys: unknown[] = [];
  let database: DataSource;

  @Injectable()
  class Stock {
    constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

    @lockAmong(order, { value: 'stock', keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 2 }, Transactional())
    async take(units: number) {
      keys.push(currentLease()?.key, this.host.isTransactionActive());
      await take(this.host.tx, units);
      return units;
    }
  }

  async function bootStock() {
    database = await openDatabase(log);
    const booted = await bootWith(database, Stock);
    logLocks(booted, log);
    return booted;
  }
  beforeEach(() => [log, keys].forEach((list) => list.splice(0)));
  afterEach(() => database.destroy());

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
