import { Injectable } from '@nestjs/common';
import { Sale, type Receipt } from '../stock/sale.js';
import type { StockVersion } from './stock-version.js';

/** Right as long as there is one instance; of two, each knows only its own callers. */
@Injectable()
export class LocalLockService implements StockVersion {
  /** Ends of the last call in line, by SKU. */
  private readonly tails = new Map<string, Promise<unknown>>();

  constructor(private readonly sale: Sale) {}

  async reduce(sku: string, units: number): Promise<Receipt> {
    const ahead = this.tails.get(sku);
    const sale = (ahead ?? Promise.resolve()).then(() => this.sale.sell(sku, units));
    const tail = sale.catch(() => undefined);
    this.tails.set(sku, tail);
    try {
      return await sale;
    } finally {
      if (this.tails.get(sku) === tail) this.tails.delete(sku);
    }
  }
}
