import { Inject, Injectable } from '@nestjs/common';
import { Cron, Interval } from '@nestjs/schedule';
import { currentLease, LeaderOnly } from 'nestjs-distributed-lock';
import { Outbox } from './schedule-report.js';

// #region leader-only
@Injectable()
export class BillingJobs {
  constructor(@Inject(Outbox) private readonly outbox: Outbox) {}

  @Cron('0 */5 * * * *', { name: 'invoices' })
  @LeaderOnly('billing', { keyTimeout: 10_000 })
  async sendInvoices(): Promise<void> {
    await this.outbox.send('invoices');
  }

  @Interval('reminders', 60_000)
  @LeaderOnly('billing')
  async sendReminders(): Promise<void> {
    await this.outbox.send('reminders');
  }
}
// #endregion

@Injectable()
export class ImportJobs {
  constructor(@Inject(Outbox) private readonly outbox: Outbox) {}

  // #region leader-only-long
  @Cron('0 0 3 * * *', { name: 'import' })
  @LeaderOnly('imports', { keyTimeout: 10_000 })
  async importAll(): Promise<void> {
    const term = currentLease();
    for (const file of ['a.csv', 'b.csv', 'c.csv']) {
      if (term?.signal.aborted) return;
      await this.outbox.send(`${file} by ${term?.fencingToken}`);
    }
  }
  // #endregion
}
