import { Injectable } from '@nestjs/common';
import { currentLease, DistributedLock, LockLostError, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';
import { Gate } from '../support/gate.js';
import { SqlTable } from './stand-ins/sql-table.js';

@Injectable()
export class StocktakeService {
  readonly counting = new Gate();
  readonly signals: AbortSignal[] = [];

  constructor(private readonly db: SqlTable) {}

  private async count(sku: string, signal: AbortSignal): Promise<number> {
    this.signals.push(signal);
    await this.counting.pass();
    return sku.length;
  }

  // #region inside-the-method
  @DistributedLock<StocktakeService['recount']>({ value: 'stocktake', key: (sku) => sku, maxHold: 600_000 })
  async recount(sku: string): Promise<number> {
    const { fencingToken, signal } = currentLease()!;
    const units = await this.count(sku, signal); // pass the signal on, as to fetch(url, { signal })
    const sql = 'UPDATE stock SET units = $1, fence = $2 WHERE sku = $3 AND fence <= $2'; // a later holder has a larger token
    const { rowCount } = await this.db.query(sql, [units, fencingToken, sku]);
    if (rowCount === 0) throw new Error('A later holder has already written: this count is stale.');
    return units;
  }
  // #endregion
}

export class TillService {
  constructor(private readonly stock: { reduce(sku: string, units: number): Promise<number> }) {}

  // #region errors
  async buy(sku: string): Promise<string> {
    try {
      return `${await this.stock.reduce(sku, 1)} left`;
    } catch (error) {
      if (error instanceof LockTimeoutError) return 'busy'; // contention: reduce() did not run
      if (error instanceof StoreError) return 'closed'; // outage: reduce() did not run
      if (error instanceof LockLostError) return `check: ${String(error.result)} left`; // it ran, perhaps at the same time as another holder
      throw error; // an error of reduce() itself
    }
  }
  // #endregion
}
