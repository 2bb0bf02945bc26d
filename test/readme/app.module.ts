// #region root-module
import { Module } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { StockService } from './stock.service.js';

const url = process.env.REDIS_URL ?? 'redis://localhost:6379';

@Module({
  imports: [DistributedLockModule.forRoot({ store: redisStore({ url }) })],
  providers: [StockService, { provide: Redis, useFactory: () => new Redis(url) }],
})
export class AppModule {}
// #endregion
