import { Injectable } from '@nestjs/common';
import { LockLostError, LockTimeoutError, StoreError } from 'nestjs-distributed-lock';

export interface Buyer {
  reduce(sku: string, units: number): Promise<number>;
}

@Injectable()
export class TillService {
  constructor(private readonly stock: Buyer) {}

  // #region errors
  async buy(sku: string): Promise<string> {
    try {
      return `${await this.stock.reduce(sku, 1)} left`;
    } catch (error) {
      if (error instanceof LockTimeoutError) return 'busy'; // contention: nothing was done
      if (error instanceof StoreError) return 'closed'; // an outage: nothing was done
      if (error instanceof LockLostError) return `to be checked: ${String(error.result)} left`; // it was done, perhaps not alone
      throw error; // what reduce() itself has thrown comes through as it is
    }
  }
  // #endregion
}
