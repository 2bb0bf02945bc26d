import { ConflictException, Controller, Injectable, Param, Post } from '@nestjs/common';
import { DistributedLock, Semaphore } from 'nestjs-distributed-lock';
import { pause } from '../support/time.js';

@Controller('orders')
export class OrdersController {
  // #region conflict
  @Post(':id/pay')
  @DistributedLock<OrdersController['pay']>({
    value: 'order',
    key: (id) => id,
    waitTimeout: 0, // one try
    onTimeout: () => {
      throw new ConflictException('This order is being paid already.');
    },
  })
  async pay(@Param('id') id: string): Promise<string> {
    return `${id} is paid`;
  }
  // #endregion
}

@Injectable()
export class PartnerService {
  readonly starts: number[] = [];

  private async post(order: string): Promise<string> {
    this.starts.push(performance.now());
    return `${order} sent`;
  }

  // #region rate-limit
  /** At most five calls start within any second, counted over all instances. */
  @Semaphore({ value: 'partner-api', permits: 5, minHold: 1000, waitTimeout: 10_000 })
  async send(order: string): Promise<string> {
    return this.post(order);
  }
  // #endregion
}

/** Reads and writes take a moment, and exclude nobody. */
@Injectable()
export class Shelf {
  private readonly units = new Map<string, number>();

  async read(sku: string): Promise<number> {
    await pause(2);
    return this.units.get(sku) ?? 0;
  }

  async write(sku: string, units: number): Promise<number> {
    await pause(2);
    this.units.set(sku, units);
    return units;
  }
}

@Injectable()
export class OrderLinesService {
  constructor(private readonly shelf: Shelf) {}

  // #region siblings
  @DistributedLock({ value: 'shelves' })
  async take(sku: string): Promise<void> {
    await this.shelf.write(sku, (await this.shelf.read(sku)) - 1);
  }

  @DistributedLock({ value: 'shelves' })
  async takeTwo(sku: string): Promise<void> {
    await this.take(sku); // enters at once: this call chain holds the key
    await this.take(sku); // one after the other: under Promise.all both would run at the same time
  }
  // #endregion

  // #region siblings-at-once
  @DistributedLock({ value: 'shelves' })
  async takeTwoAtOnce(sku: string): Promise<void> {
    await Promise.all([this.take(sku), this.take(sku)]);
  }
  // #endregion
}
