import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { DistributedLock } from 'nestjs-distributed-lock';
import { config } from '../config.js';
import { StockStore } from '../stock/stock.store.js';

const PERIOD = config.stocktakeSeconds * 1000;

/** A job of the whole shop: every instance has the cron, one of them runs it. */
@Injectable()
export class StocktakeService {
  constructor(private readonly stock: StockStore) {}

  // One try, and no error for those that come second. The key is kept when the job is done, since another instance's clock may be behind,
  // or its event loop busy: half a period covers both, as a tick that is more than a quarter late is not run at all.
  @Cron(`*/${config.stocktakeSeconds} * * * * *`, { threshold: PERIOD / 4 })
  @DistributedLock({ prefix: 'shop-', value: 'stocktake', retryCount: 1, onTimeout: 'skip', minHold: PERIOD / 2 })
  async take(): Promise<void> {
    await this.stock.countStocktake(Math.round(Date.now() / PERIOD) * config.stocktakeSeconds);
  }

  runs(): Promise<Record<string, number>> {
    return this.stock.stocktakes();
  }
}
