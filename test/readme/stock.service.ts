// #region quick-start
import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Stock } from './stock.js'; // yours: it reads and writes a table

@Injectable()
export class StockService {
  constructor(private readonly stock: Stock) {}

  @DistributedLock({ value: 'stock', key: (sku: string) => sku })
  async sell(sku: string): Promise<void> {
    const left = await this.stock.read(sku); // unlocked, two read the same
    if (left === 0) throw new Error('Sold out');
    await this.stock.write(sku, left - 1);
  }
}
// #endregion
