import { Injectable, NotFoundException, type OnApplicationBootstrap } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Packer } from './packer.js';
import { StockStore } from './stock.store.js';

export const ASSORTMENT = { apple: 100, pear: 100, plum: 100 };

export interface Receipt {
  sku: string;
  /** `false`: not enough on the shelf. That is an answer, not an error. */
  sold: boolean;
  left: number;
}

/** A lock per shelf: buyers of pears do not wait for buyers of apples. Methods with the same `value` and `key` exclude each other. */
const shelfLock = {
  value: 'stock',
  key: (sku: string) => sku,
  // For the demo: no limit, so that a buyer waits until it is served. Behind a proxy that gives up after 30 s, set `waitTimeout: 20_000` instead:
  // a buyer that waits longer gets a 423. The default is to wait for 1 to 2 s.
  retryCount: 0,
};

@Injectable()
export class StockService implements OnApplicationBootstrap {
  constructor(
    private readonly stock: StockStore,
    private readonly packer: Packer,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    for (const [sku, units] of Object.entries(ASSORTMENT)) await this.open(sku, units);
  }

  // Without the lock two buyers read the same number and write the same number: one unit is sold twice.
  @DistributedLock(shelfLock)
  async sell(sku: string, units: number): Promise<Receipt> {
    const shelf = await this.left(sku);
    if (shelf < units) return { sku, sold: false, left: shelf };
    await this.packer.pack(sku, units);
    const left = shelf - units;
    await this.stock.write(sku, left);
    return { sku, sold: true, left };
  }

  @DistributedLock(shelfLock)
  async fill(sku: string, units: number): Promise<void> {
    await this.stock.write(sku, units);
  }

  /** Fills a shelf, unless another instance has done that. */
  @DistributedLock(shelfLock)
  async open(sku: string, units: number): Promise<void> {
    if ((await this.stock.read(sku)) === null) await this.stock.write(sku, units);
  }

  async left(sku: string): Promise<number> {
    const units = await this.stock.read(sku);
    if (units === null) throw new NotFoundException(`There is no "${sku}" in this shop.`);
    return units;
  }
}
