import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { StockController } from './stock.controller.js';
import { StockService } from './stock.service.js';

@Module({
  imports: [
    DistributedLockModule.forRoot({
      store: redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }),
      namespace: 'quick-start:',
    }),
  ],
  controllers: [StockController],
  // A buyer who has waited too long gets a 423 with Retry-After; without Redis it is a 503.
  providers: [StockService, { provide: APP_FILTER, useClass: LockExceptionFilter }],
})
export class AppModule {}
