import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Cluster, Redis } from 'ioredis';
import { config } from '../config.js';
import { StockStore } from './stock.store.js';

const { redisCluster, redisUrl, namespace: keyPrefix } = config;

/** The stock that all instances of the shop share. */
@Injectable()
export class RedisStockStore extends StockStore implements OnApplicationShutdown {
  private readonly redis = redisCluster ? new Cluster(redisCluster, { keyPrefix }) : new Redis(redisUrl!, { keyPrefix });

  async read(sku: string): Promise<number | null> {
    const units = await this.redis.get(`stock:${sku}`);
    return units === null ? null : Number(units);
  }

  async write(sku: string, units: number): Promise<void> {
    await this.redis.set(`stock:${sku}`, units);
  }

  async mark(name: string, expiry: number): Promise<boolean> {
    return (await this.redis.set(`mark:${name}`, 'taken', 'PX', expiry, 'NX')) === 'OK';
  }

  async unmark(name: string): Promise<void> {
    await this.redis.del(`mark:${name}`);
  }

  async countStocktake(tick: number): Promise<void> {
    await this.redis.hincrby('stocktakes', String(tick), 1);
  }

  async stocktakes(): Promise<Record<string, number>> {
    const runs = await this.redis.hgetall('stocktakes');
    return Object.fromEntries(Object.entries(runs).map(([tick, count]) => [tick, Number(count)]));
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}
