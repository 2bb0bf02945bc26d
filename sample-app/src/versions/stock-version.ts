import type { Receipt } from '../stock/sale.js';

/** One way to sell the same thing to many at once. */
export interface StockVersion {
  reduce(sku: string, units: number): Promise<Receipt>;
}
