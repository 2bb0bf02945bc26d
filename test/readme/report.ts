import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { DistributedLock } from 'nestjs-distributed-lock';

export abstract class Mailer {
  abstract send(text: string): Promise<void>;
}

@Injectable()
export class ReportService {
  constructor(private readonly mailer: Mailer) {}

  // #region cron
  @Cron('0 3 * * *')
  @DistributedLock({ waitTimeout: 0, onTimeout: 'skip', minHold: 60_000, keyTimeout: 30_000 })
  async sendReport(): Promise<void> {
    await this.mailer.send('All is well.');
  }
  // #endregion
}
