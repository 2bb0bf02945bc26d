// #region cron-lock
import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { CronLock } from 'nestjs-distributed-lock';

@Injectable()
export class ReportService {
  @Cron('0 3 * * *')
  @CronLock({ minHold: 60_000 }) // one instance runs it, the others skip it
  async sendReport(): Promise<void> {
    console.log('All is well.');
  }
}
// #endregion
