import { Module } from '@nestjs/common';
import { StockService } from './stock.service.js';

// #region module
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';

@Module({
  imports: [DistributedLockModule.forRoot({ store: redisStore({ url: process.env.REDIS_URL! }) })],
  providers: [StockService],
})
export class AppModule {}
// #endregion
