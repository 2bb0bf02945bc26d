import { Controller, Get, Header, Injectable, Param } from '@nestjs/common';
import { DistributedLock, InjectLocks, LeaderOnly, Locks } from 'nestjs-distributed-lock';
import { register } from 'prom-client';

/** What no metric may contain. */
export const SECRETS = { sku: 'sku-of-alice', key: 'order-of-bob', other: 'price-of-carol' };

@Injectable()
export class StockService {
  private open = Promise.resolve();
  private next: (() => void) | undefined;

  constructor(@InjectLocks() readonly locks: Locks) {}

  @DistributedLock<StockService['reduce']>({ key: (sku) => sku, waitTimeout: 20_000 })
  async reduce(_sku: string): Promise<void> {
    await this.open;
  }

  @DistributedLock({ value: SECRETS.key, waitTimeout: 30 })
  async hurry(): Promise<void> {}

  @LeaderOnly('reports')
  async report(): Promise<void> {}

  /** From now on `reduce` does not end before {@link go}. */
  stop(): void {
    this.open = new Promise((resolve) => (this.next = resolve));
  }

  go(): void {
    this.next?.();
  }
}

@Controller()
export class StockController {
  constructor(private readonly stock: StockService) {}

  @Get('reduce/:sku')
  async reduce(@Param('sku') sku: string): Promise<string> {
    await this.stock.reduce(sku);
    return 'reduced';
  }

  @Get('metrics')
  @Header('content-type', 'text/plain; version=0.0.4')
  async metrics(): Promise<string> {
    return register.metrics();
  }
}
