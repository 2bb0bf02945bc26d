import { Inject, Injectable } from '@nestjs/common';
import { Cron, Interval } from '@nestjs/schedule';
import { CronLock, currentLease, LeaderOnly } from 'nestjs-distributed-lock';

/** Sends what the jobs below make. */
export class Outbox {
  readonly sent: string[] = [];
  async send(text: string): Promise<void> {
    this.sent.push(`${text} under ${currentLease()?.key ?? 'no lock'}`);
  }
}

// #region cron-on-one-instance
@Injectable()
export class DigestJobs {
  constructor(@Inject(Outbox) private readonly outbox: Outbox) {}

  @Cron('0 */5 * * * *', { name: 'digest' })
  @CronLock({ minHold: 60_000 })
  async sendDigest(): Promise<void> {
    await this.outbox.send('digest');
  }
}
// #endregion

@Injectable()
export class SweepJobs {
  constructor(@Inject(Outbox) private readonly outbox: Outbox) {}

  // #region interval-on-one-instance
  /** Every instance has this interval. A tick during the `minHold` is skipped. */
  @Interval('sweep', 10_000)
  @CronLock({ minHold: 9_000 })
  async sweep(): Promise<void> {
    await this.outbox.send('sweep');
  }
  // #endregion
}

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
