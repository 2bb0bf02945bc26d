import { Injectable, NotFoundException } from '@nestjs/common';
import { setTimeout as pause } from 'node:timers/promises';
import { config } from '../config.js';
import { StockStore } from './stock.store.js';

export interface Receipt {
  sku: string;
  /** `false`: not enough on the shelf. That is an answer, not an error. */
  sold: boolean;
  left: number;
}

/** The section that needs a lock, the same for every version: read, check, work, write. */
@Injectable()
export class Sale {
  private sales = 0;

  constructor(private readonly stock: StockStore) {}

  async sell(sku: string, units: number): Promise<Receipt> {
    const shelf = await this.stock.read(sku);
    if (shelf === null) throw new NotFoundException(`There is no "${sku}" in this shop.`);
    if (shelf < units) return { sku, sold: false, left: shelf };
    await pause(++this.sales % 20 === 0 ? config.slowWork : config.work);
    const left = shelf - units;
    await this.stock.write(sku, left);
    return { sku, sold: true, left };
  }
}
