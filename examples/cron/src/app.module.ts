import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { ReportService } from './report.service.js';

@Module({
  imports: [
    DistributedLockModule.forRoot({
      store: redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }),
      namespace: 'cron:',
    }),
    ScheduleModule.forRoot(),
  ],
  providers: [ReportService],
})
export class AppModule {}
