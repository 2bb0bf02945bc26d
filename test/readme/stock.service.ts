import { Injectable } from '@nestjs/common';
import { DistributedLock } from 'nestjs-distributed-lock';
import { Shelf } from './stand-ins/shelf.js';

// #region quick-start
@Injectable()
export class StockService {
  constructor(private readonly shelf: Shelf) {}
  @DistributedLock({ prefix: 'shop-', value: 'stock', paramLock: ['0'], keyTimeout: 10_000, waitTimeout: 30_000 })
  async reduce(sku: string, units: number): Promise<number> {
    const left = (await this.shelf.read(sku)) - units; // without the lock, two buyers read the same number here
    if (left < 0) throw new Error('Sold out');
    return this.shelf.write(sku, left);
  }
}
// #endregion

// #region root-module
import { Module } from '@nestjs/common';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';

const store = redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' });

@Module({ imports: [DistributedLockModule.forRoot({ store })], providers: [StockService, Shelf] })
export class AppModule {}
// #endregion
