import { Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { config } from '../config.js';
import { Sale, type Receipt } from '../stock/sale.js';
import { StockStore } from '../stock/stock.store.js';
import type { StockVersion } from './stock-version.js';

/**
 * SETNX with an expiry that is longer than most sales. Oversells from the first slow one on: nobody renews its mark, so the next sale enters; and the slow
 * one, when it is done, deletes the mark of that next one, so a third enters while the second is inside; the second deletes the mark of the third.
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
