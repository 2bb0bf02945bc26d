import { Injectable } from '@nestjs/common';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';

export abstract class Printer {
  abstract print(label: string): Promise<void>;
}

@Injectable()
export class PriceListService {
  constructor(private readonly printer: Printer) {}

  // #region signal
  @DistributedLock({ prefix: 'shop-', value: 'prices', keyTimeout: 5000, maxHold: 600_000 })
  async publish(shops: string[], prices: string): Promise<void> {
    const { signal } = currentLease()!;
    for (const url of shops) await fetch(url, { method: 'PUT', body: prices, signal }); // rejects as soon as the lease is lost
  }

  @DistributedLock({ prefix: 'shop-', value: 'labels', keyTimeout: 5000 })
  async printLabels(labels: string[]): Promise<void> {
    const lease = currentLease()!;
    for (const label of labels) {
      lease.assertHeld(); // throws LockLostError: what takes no signal is not begun
      await this.printer.print(label);
    }
  }
  // #endregion
}
