import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { InboxPoller } from './inbox-poller.js';

@Module({
  imports: [
    DistributedLockModule.forRoot({
      store: redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }),
      namespace: 'leader:',
    }),
    ScheduleModule.forRoot(),
  ],
  providers: [InboxPoller],
})
export class AppModule {}
