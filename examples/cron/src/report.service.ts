import { Injectable, Logger } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { CronLock } from 'nestjs-distributed-lock';

@Injectable()
export class ReportService {
  private readonly logger = new Logger(ReportService.name);

  // Every instance has this cron, and one of them runs each tick. minHold keeps the lock after a quick job, for an instance whose clock is behind:
  // it is longer than clocks differ, and shorter than the period.
  @Cron('*/2 * * * * *')
  @CronLock({ minHold: 1_000 })
  async send(): Promise<void> {
    this.logger.log(`The report of ${new Date().toISOString()} is sent.`);
  }
}
