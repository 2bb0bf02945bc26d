import type { OnApplicationShutdown } from '@nestjs/common';
import type { Cluster, Redis } from 'ioredis';
import { StockStore } from './stock.store.js';

export class RedisStockStore extends StockStore implements OnApplicationShutdown {
  constructor(private readonly redis: Redis | Cluster) {
    super();
  }

  async read(sku: string): Promise<number | null> {
    const units = await this.redis.get(`shop:stock:${sku}`);
    return units === null ? null : Number(units);
  }

  async write(sku: string, units: number): Promise<void> {
    await this.redis.set(`shop:stock:${sku}`, units);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}
