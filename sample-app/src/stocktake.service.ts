import { Injectable, Logger } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { CronLock } from 'nestjs-distributed-lock';
import { ASSORTMENT, StockService } from './stock/stock.service.js';

@Injectable()
export class StocktakeService {
  private readonly logger = new Logger('Stocktake');

  constructor(private readonly stock: StockService) {}

  // Every instance has this cron, and one of them runs each tick. minHold keeps the lock after a quick job, for an instance whose clock is behind.
  // Half a period is enough, because a tick that is more than `threshold` late is not run.
  @Cron('*/10 * * * * *', { threshold: 2_500 })
  @CronLock({ value: 'stocktake', minHold: 5_000 })
  async take(): Promise<void> {
    const shelves = await Promise.all(Object.keys(ASSORTMENT).map(async (sku) => `${await this.stock.left(sku)} ${sku}`));
    this.logger.log(`${shelves.join(', ')} at ${new Date().toISOString()}`);
  }
}
