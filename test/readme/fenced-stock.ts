import { Injectable } from '@nestjs/common';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';
import { Gate } from './stand-ins/gate.js';
import { SqlTable } from './stand-ins/sql-table.js';

@Injectable()
export class FencedStockService {
  readonly counting = new Gate();

  constructor(private readonly db: SqlTable) {}

  private async count(sku: string): Promise<number> {
    await this.counting.pass();
    return sku.length;
  }

  // #region fencing-token
  @DistributedLock({ value: 'stocktake', paramLock: ['0'], keyTimeout: 10_000 })
  async recount(sku: string): Promise<number> {
    const token = currentLease()?.fencingToken; // of this call: larger than that of any earlier holder
    const units = await this.count(sku);
    const { rowCount } = await this.db.query('UPDATE stock SET units = $1, fence = $2 WHERE sku = $3 AND fence <= $2', [units, token, sku]);
    if (rowCount === 0) throw new Error('A later holder has written already: this count is stale.');
    return units;
  }
  // #endregion
}
