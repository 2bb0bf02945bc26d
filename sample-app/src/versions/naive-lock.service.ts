import { Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { config } from '../config.js';
import { Sale, type Receipt } from '../stock/sale.js';
import { StockStore } from '../stock/stock.store.js';
import type { StockVersion } from './stock-version.js';

/**
 * SETNX with an expiry. Oversells as soon as a sale outlasts the expiry: nobody renews the mark, so the next one enters; and the first,
 * when it is done, removes the mark of the second, so a third enters.
 */
@Injectable()
export class NaiveLockService implements StockVersion {
  constructor(
    private readonly sale: Sale,
    private readonly stock: StockStore,
  ) {}

  async reduce(sku: string, units: number): Promise<Receipt> {
    while (!(await this.stock.mark(sku, config.naiveExpiry))) await pause(25 + Math.random() * 50);
    try {
      return await this.sale.sell(sku, units);
    } finally {
      await this.stock.unmark(sku);
    }
  }
}
