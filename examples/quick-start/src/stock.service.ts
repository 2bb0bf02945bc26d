import { ConflictException, Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DistributedLock } from 'nestjs-distributed-lock';
import { setTimeout as pause } from 'node:timers/promises';

@Injectable()
export class StockService implements OnApplicationShutdown {
  private readonly redis = new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379');

  // Buyers of one product wait for each other, on all instances; buyers of another do not wait. Without this line two buyers read the same number.
  @DistributedLock({ value: 'stock', key: (sku: string) => sku, waitTimeout: 5_000 })
  async buy(sku: string): Promise<number> {
    const left = Number(await this.redis.get(`stock:${sku}`));
    if (left === 0) throw new ConflictException(`There is no ${sku} left.`);
    await pause(20); // the payment
    await this.redis.set(`stock:${sku}`, left - 1);
    return left - 1;
  }

  // The same lock: a sale that has read the old number would overwrite the new one.
  @DistributedLock({ value: 'stock', key: (sku: string) => sku, waitTimeout: 5_000 })
  async fill(sku: string, units: number): Promise<void> {
    await this.redis.set(`stock:${sku}`, units);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}
