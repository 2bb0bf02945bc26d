// An app whose interval is for the leader only; each run is written to a list at Redis with the token of its term.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Interval, ScheduleModule } from '@nestjs/schedule';
import { Redis, type RedisOptions } from 'ioredis';
import { currentLease, DistributedLockModule, LeaderOnly } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { tellParent } from '../support/child.js';

const { connection, keyTimeout } = JSON.parse(process.argv[2]!) as { connection: RedisOptions; keyTimeout: number };
const redis = new Redis(connection);

class Jobs {
  @Interval(10)
  @LeaderOnly('ticks', { keyTimeout })
  async tick(): Promise<void> {
    await redis.rpush('ticks', JSON.stringify({ pid: process.pid, token: currentLease()?.fencingToken }));
  }
}

@Module({
  imports: [ScheduleModule.forRoot(), DistributedLockModule.forRoot({ store: redisStore({ options: connection }) })],
  providers: [Jobs],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
app.enableShutdownHooks();
tellParent({ type: 'ready' });
