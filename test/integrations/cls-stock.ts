import { Inject, Injectable, Module } from '@nestjs/common';
import { ClsPluginTransactional, Transactional, TransactionHost } from '@nestjs-cls/transactional';
import { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { ClsModule } from 'nestjs-cls';
import { DistributedLock } from 'nestjs-distributed-lock';
import { DataSource } from 'typeorm';

/** A module for `@Transactional` of @nestjs-cls/transactional over this database. */
export function clsModule(database: DataSource) {
  @Module({ providers: [{ provide: DataSource, useValue: database }], exports: [DataSource] })
  class DatabaseModule {}
  const adapter = new TransactionalAdapterTypeOrm({ dataSourceToken: DataSource });
  return ClsModule.forRoot({ plugins: [new ClsPluginTransactional({ imports: [DatabaseModule], adapter })] });
}

@Injectable()
export class ClsStockService {
  constructor(@Inject(TransactionHost) private readonly host: TransactionHost<TransactionalAdapterTypeOrm>) {}

  // #region transactions-cls
  @DistributedLock({ value: 'stock', paramLock: ['0'], keyTimeout: 10_000, waitTimeout: 30_000 }) // the upper one is the outer one
  @Transactional()
  async reduce(sku: string): Promise<void> {
    const [row] = await this.host.tx.query<{ units: number }[]>('SELECT units FROM stock WHERE sku = ?', [sku]);
    if (!row?.units) throw new Error('Sold out'); // rolled back; then the lock is released
    await this.host.tx.query('UPDATE stock SET units = ? WHERE sku = ?', [row.units - 1, sku]);
  } // committed; then the lock is released
  // #endregion

  // #region transactions-joined
  @Transactional()
  async order(sku: string): Promise<void> {
    await this.reduce(sku); // wrong: it joins this transaction, which is committed after its lock is released
  }

  @DistributedLock({ value: 'stock', paramLock: ['0'], keyTimeout: 10_000, waitTimeout: 30_000 })
  @Transactional()
  async orderSafely(sku: string): Promise<void> {
    await this.reduce(sku); // re-enters the same key; the outer lock is held until after the commit
  }
  // #endregion
}
