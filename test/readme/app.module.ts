// #region module
import { Module } from '@nestjs/common';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { Stock } from './stock.js'; // './stock' in a CommonJS app
import { StockService } from './stock.service.js';

const url = process.env.REDIS_URL ?? 'redis://localhost:6379';
@Module({
  imports: [DistributedLockModule.forRoot({ store: redisStore({ url }) })],
  providers: [StockService, Stock],
})
export class AppModule {}
// #endregion
