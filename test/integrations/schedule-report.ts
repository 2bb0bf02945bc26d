import { Inject, Injectable } from '@nestjs/common';
import { Cron, Interval } from '@nestjs/schedule';
import { currentLease, DistributedLock } from 'nestjs-distributed-lock';

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
  @DistributedLock({ onTimeout: 'skip', retryCount: 1, minHold: 60_000, keyTimeout: 30_000 })
  async sendDigest(): Promise<void> {
    await this.outbox.send('digest');
  }
}
// #endregion

@Injectable()
export class SweepJobs {
  constructor(@Inject(Outbox) private readonly outbox: Outbox) {}

  // #region interval-on-one-instance
  /** Every instance has the interval; a tick that comes while the key is kept is skipped. */
  @Interval('sweep', 10_000)
  @DistributedLock({ onTimeout: 'skip', retryCount: 1, minHold: 9_000, keyTimeout: 30_000 })
  async sweep(): Promise<void> {
    await this.outbox.send('sweep');
  }
  // #endregion
}
