import { Module, ValidationPipe } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { OperateModule } from './operate/operate.module.js';
import { Packer } from './stock/packer.js';
import { StockController } from './stock/stock.controller.js';
import { StockService } from './stock/stock.service.js';
import { StockStore } from './stock/stock.store.js';
import { StocktakeService } from './stocktake.service.js';
import { lockStore, stockStore } from './store.js';

@Module({
  imports: [
    DistributedLockModule.forRoot({ store: lockStore(), namespace: 'shop:', telemetry: prometheus() }),
    ScheduleModule.forRoot(),
    OperateModule,
  ],
  controllers: [StockController],
  providers: [
    { provide: StockStore, useFactory: stockStore },
    Packer,
    StockService,
    StocktakeService,
    { provide: APP_PIPE, useValue: new ValidationPipe({ transform: true, whitelist: true, forbidNonWhitelisted: true }) },
    // 423 or 503 with Retry-After where a lock was not acquired.
    { provide: APP_FILTER, useClass: LockExceptionFilter },
  ],
})
export class AppModule {}
