// #region health-controller
import { Controller, Get, Module } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { LockHealthIndicator } from 'nestjs-distributed-lock/terminus';

@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get('ready')
  @HealthCheck()
  ready() {
    return this.health.check([() => this.locks.isHealthy('locks', { within: 500 })]);
  }
}

@Module({ imports: [TerminusModule], controllers: [HealthController], providers: [LockHealthIndicator] })
export class HealthModule {}
// #endregion
