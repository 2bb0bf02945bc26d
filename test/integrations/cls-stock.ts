import { Inject, Injectable } from '@nestjs/common';
import { Transactional, TransactionHost } from '@nestjs-cls/transactional';
import type { TransactionalAdapterTypeOrm } from '@nestjs-cls/transactional-adapter-typeorm';
import { DistributedLock } from 'nestjs-distributed-lock';

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
