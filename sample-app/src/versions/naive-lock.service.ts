import { Injectable } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { config } from '../config.js';
import { Sale, type Receipt } from '../stock/sale.js';
import { StockStore } from '../stock/stock.store.js';
import type { StockVersion } from './stock-version.js';

/**
 * SETNX with an expiry that is longer than most sales. It oversells from the first slow one on: nobody renews its mark, so the next sale enters. The slow
 * one, when it is done, deletes the mark of that next one, so that a third enters while the second is inside. The second then deletes the mark of the third.
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
