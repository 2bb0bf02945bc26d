import { ConflictException, Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { setTimeout as pause } from 'node:timers/promises';

@Injectable()
export class StockService {
  readonly shelves = new Map([['apple', 10]]);

  @DistributedLock({ value: 'stock', key: (sku: string) => sku, waitTimeout: 30_000 })
  async buy(sku: string): Promise<number> {
    const left = this.shelves.get(sku)!;
    if (left === 0) throw new ConflictException(`There is no ${sku} left.`);
    await pause(5);
    this.shelves.set(sku, left - 1);
    return left - 1;
  }
}
