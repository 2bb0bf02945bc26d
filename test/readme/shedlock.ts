import { Injectable } from '@nestjs/common';
import { Cron } from '@nestjs/schedule';
import { CronLock } from 'nestjs-distributed-lock';

@Injectable()
export class ReportService {
  // #region shedlock
  // @SchedulerLock(name = "report", lockAtMostFor = "14m", lockAtLeastFor = "14m")
  @Cron('0 */15 * * * *')
  @CronLock({ value: 'report', minHold: 840_000 })
  async report(): Promise<string | undefined> {
    return 'the report';
  }
  // #endregion
}
