import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { basicAuth, DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { LockHealthIndicator } from 'nestjs-distributed-lock/terminus';
import { Drain } from './drain.js';
import { HealthController } from './health.controller.js';
import { MetricsController } from './metrics.controller.js';

const password = process.env.DASHBOARD_PASSWORD;

/** `/health/ready`, `/metrics`, and with a password the dashboard at `/locks`, whose user is `ops`. */
@Module({
  imports: [
    TerminusModule,
    ...(password ? [DistributedLockDashboardModule.forRoot({ authorize: basicAuth({ user: 'ops', password }) })] : []),
  ],
  controllers: [HealthController, MetricsController],
  providers: [LockHealthIndicator, Drain],
})
export class OperateModule {}
