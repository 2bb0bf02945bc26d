import { Module, ValidationPipe } from '@nestjs/common';
import { APP_FILTER, APP_PIPE } from '@nestjs/core';
import { ScheduleModule } from '@nestjs/schedule';
import { join } from 'node:path';
import { DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { basicAuth, DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { fileStore } from 'nestjs-distributed-lock/file';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { config } from './config.js';
import { Drain } from './drain.js';
import { FileStockStore } from './stock/file-stock.store.js';
import { PostgresStockStore } from './stock/postgres-stock.store.js';
import { RedisStockStore } from './stock/redis-stock.store.js';
import { Sale } from './stock/sale.js';
import { StockController } from './stock/stock.controller.js';
import { StockRoomService } from './stock/stock-room.service.js';
import { StockStore } from './stock/stock.store.js';
import { StocktakeController } from './stocktake/stocktake.controller.js';
import { StocktakeService } from './stocktake/stocktake.service.js';
import { LocalLockService } from './versions/local-lock.service.js';
import { LockedService } from './versions/locked.service.js';
import { NaiveLockService } from './versions/naive-lock.service.js';
import { UnlockedService } from './versions/unlocked.service.js';

const { dashboardPassword, databaseUrl, redisCluster, redisUrl, directory, namespace } = config;

/** Where the locks are, and the stock. */
const [store, stock] = databaseUrl
  ? [postgresStore({ url: databaseUrl, schema: 'create' }), PostgresStockStore]
  : redisCluster
    ? [redisStore({ cluster: redisCluster }), RedisStockStore]
    : redisUrl
      ? [redisStore({ url: redisUrl }), RedisStockStore]
      : [fileStore({ directory: join(directory, 'locks') }), FileStockStore];

const dashboard = dashboardPassword
  ? [DistributedLockDashboardModule.forRoot({ authorize: basicAuth({ user: 'ops', password: dashboardPassword }) })]
  : [];

@Module({
  imports: [DistributedLockModule.forRoot({ store, namespace }), ...dashboard, ScheduleModule.forRoot()],
  controllers: [StockController, StocktakeController],
  providers: [
    { provide: StockStore, useClass: stock },
    Sale,
    StockRoomService,
    StocktakeService,
    UnlockedService,
    LocalLockService,
    NaiveLockService,
    LockedService,
    Drain,
    { provide: APP_PIPE, useValue: new ValidationPipe({ transform: true, whitelist: true, forbidNonWhitelisted: true }) },
    { provide: APP_FILTER, useClass: LockExceptionFilter },
  ],
})
export class AppModule {}
