import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { CronLock } from 'nestjs-distributed-lock';

export abstract class Mailer {
  abstract send(text: string): Promise<void>;
}

@Injectable()
export class ReportService {
  constructor(private readonly mailer: Mailer) {}

  // #region cron-lock
  @Cron('0 3 * * *')
  @CronLock({ minHold: 60_000 }) // one instance runs it, the others skip it
  async sendReport(): Promise<void> {
    await this.mailer.send('All is well.');
  }
  // #endregion
}
