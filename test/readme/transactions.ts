import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Database, Transactional } from './stand-ins/database.js';

@Injectable()
export class LedgerService {
  constructor(readonly db: Database) {}

  // #region transaction
  @DistributedLock({ value: 'ledger', paramLock: ['0'], keyTimeout: 10_000, waitTimeout: 30_000 })
  async reduce(sku: string): Promise<void> {
    await this.db.transaction(async (tx) => {
      await tx.setUnits(sku, (await tx.unitsOf(sku)) - 1);
    }); // committed here; the lock is released after that
  }
  // #endregion

  // #region transaction-decorator
  @DistributedLock({ value: 'ledger', paramLock: ['0'], keyTimeout: 10_000, waitTimeout: 30_000 }) // the upper one is the outer one
  @Transactional()
  async reduceToo(sku: string): Promise<void> {
    await this.db.tx.setUnits(sku, (await this.db.tx.unitsOf(sku)) - 1);
  }
  // #endregion

  /** The wrong way round. */
  @Transactional()
  @DistributedLock({ value: 'ledger', paramLock: ['0'], keyTimeout: 10_000, waitTimeout: 30_000 })
  async reduceWrongly(sku: string): Promise<void> {
    await this.db.tx.setUnits(sku, (await this.db.tx.unitsOf(sku)) - 1);
  }
}
