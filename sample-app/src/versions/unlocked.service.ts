import { Injectable } from '@nestjs/common';
import { Sale, type Receipt } from '../stock/sale.js';
import type { StockVersion } from './stock-version.js';

/** Oversells: two that read the same number write the same number, and one unit is sold twice. */
@Injectable()
export class UnlockedService implements StockVersion {
  constructor(private readonly sale: Sale) {}

  reduce(sku: string, units: number): Promise<Receipt> {
    return this.sale.sell(sku, units);
  }
}
