// #region quick-start
import { Injectable } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DistributedLock } from 'nestjs-distributed-lock';

@Injectable()
export class StockService {
  constructor(private readonly redis: Redis) {}

  @DistributedLock<StockService['reduce']>({ value: 'stock', key: (sku) => sku, waitTimeout: 30_000 })
  async reduce(sku: string, units: number): Promise<number> {
    const left = Number(await this.redis.get(`stock:${sku}`)) - units; // without the lock, two buyers read the same number
    if (left < 0) throw new Error('Sold out');
    await this.redis.set(`stock:${sku}`, left);
    return left;
  }
}
// #endregion

export abstract class SearchIndex {
  abstract rebuild(): Promise<string>;
}

@Injectable()
export class SearchService {
  constructor(private readonly index: SearchIndex) {}

  // #region bare
  @DistributedLock()
  async rebuildIndex(): Promise<string> {
    return this.index.rebuild();
  }
  // #endregion
}
