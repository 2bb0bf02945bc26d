import { Controller, Get, Module, type OnApplicationShutdown } from '@nestjs/common';
import { APP_FILTER, NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { DistributedLock, DistributedLockModule, LockExceptionFilter } from 'nestjs-distributed-lock';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { setTimeout as pause } from 'node:timers/promises';

const url = process.env.REDIS_URL ?? 'redis://localhost:6379';

type Report = { madeAt: number; freshUntil: number };

@Controller('report')
export class ReportController implements OnApplicationShutdown {
  private readonly redis = new Redis(url);

  @Get()
  async get(): Promise<Report> {
    const cached = await this.read();
    if (!cached) return this.first();
    if (cached.freshUntil > Date.now()) return cached;
    return (await this.refresh()) ?? cached;
  }

  /** Nothing is cached: one caller of all instances computes, the others wait, and find what it has written. */
  @DistributedLock({ value: 'report', waitTimeout: 30_000 })
  async first(): Promise<Report> {
    return (await this.read()) ?? (await this.compute());
  }

  /** The cached report is old: one caller computes, the others get `undefined`, and take the old one. */
  @DistributedLock({ value: 'report', waitTimeout: 0, onTimeout: 'skip' })
  async refresh(): Promise<Report | undefined> {
    const cached = await this.read();
    return cached && cached.freshUntil > Date.now() ? cached : this.compute();
  }

  private async compute(): Promise<Report> {
    console.log('Computes the report');
    await pause(500); // a slow query
    const report = { madeAt: Date.now(), freshUntil: Date.now() + 60_000 };
    await this.redis.set('report', JSON.stringify(report));
    return report;
  }

  private async read(): Promise<Report | null> {
    return JSON.parse((await this.redis.get('report')) ?? 'null');
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}

@Module({
  imports: [DistributedLockModule.forRoot({ store: redisStore({ url }) })],
  controllers: [ReportController],
  providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }], // 423 and 503 in place of 500
})
class AppModule {}

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // a stopping app waits for its locked methods
await app.listen(process.env.PORT ?? 3000);
console.log(`The report is at ${await app.getUrl()}/report`);
