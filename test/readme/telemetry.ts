import { Controller, Get, Header, Module } from '@nestjs/common';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { register } from 'prom-client';

const url = process.env.REDIS_URL ?? 'redis://localhost:6379';

// #region prometheus
@Controller()
export class MetricsController {
  @Get('metrics')
  @Header('Content-Type', register.contentType)
  async metrics(): Promise<string> {
    return register.metrics();
  }
}

@Module({
  imports: [DistributedLockModule.forRoot({ store: redisStore({ url }), telemetry: prometheus() })],
  controllers: [MetricsController],
})
export class MeasuredModule {}
// #endregion

// #region opentelemetry
@Module({
  imports: [DistributedLockModule.forRoot({ store: redisStore({ url }), telemetry: [openTelemetry(), prometheus()] })],
})
export class TracedModule {}
// #endregion
