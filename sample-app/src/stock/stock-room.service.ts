import { Injectable, NotFoundException, type OnApplicationBootstrap } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { StockStore } from './stock.store.js';

const ON_OPENING = { apple: 100, pear: 100, plum: 100 };

/** Fills the shelves. Methods with one `prefix`, `value` and parameter share one lock: nobody sells from a shelf that is being filled. */
@Injectable()
export class StockRoomService implements OnApplicationBootstrap {
  constructor(private readonly stock: StockStore) {}

  async onApplicationBootstrap(): Promise<void> {
    for (const [sku, units] of Object.entries(ON_OPENING)) await this.fill(sku, units, true);
  }

  async left(sku: string): Promise<number> {
    const units = await this.stock.read(sku);
    if (units === null) throw new NotFoundException(`There is no "${sku}" in this shop.`);
    return units;
  }

  /** @param isOpening leaves a shelf as it is that another instance has filled. */
  @DistributedLock({ prefix: 'shop-', value: 'stock', paramLock: ['0'], keyTimeout: 10_000, retryCount: 0, retryInterval: 200 })
  async fill(sku: string, units: number, isOpening = false): Promise<void> {
    if (isOpening && (await this.stock.read(sku)) !== null) return;
    await this.stock.write(sku, units);
  }
}
