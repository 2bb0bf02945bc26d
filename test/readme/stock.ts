import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { Redis } from 'ioredis';

/** How many units of a product there are. */
@Injectable()
export class Stock implements OnModuleDestroy {
  private readonly redis = new Redis(process.env.REDIS_URL!);

  async read(sku: string): Promise<number> {
    return Number(await this.redis.get(`stock:${sku}`));
  }

  async write(sku: string, units: number): Promise<void> {
    await this.redis.set(`stock:${sku}`, units);
  }

  onModuleDestroy(): void {
    this.redis.disconnect();
  }
}
