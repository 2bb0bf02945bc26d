import { type ExecutionContext, Injectable, Module, type CanActivate } from '@nestjs/common';
import { DistributedLockModule } from 'nestjs-distributed-lock';
import { basicAuth, DistributedLockDashboardModule } from 'nestjs-distributed-lock/dashboard';
import { memoryStore } from 'nestjs-distributed-lock/memory';

@Injectable()
class SignedInGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    Object.assign(context.switchToHttp().getRequest<object>(), { user: { name: 'anna', roles: ['ops'] } });
    return true;
  }
}

const store = memoryStore();

// #region dashboard
@Module({
  imports: [
    DistributedLockModule.forRoot({ store }),
    DistributedLockDashboardModule.forRoot({
      path: 'ops/locks',
      guards: [SignedInGuard],
      authorize: (action, context) => {
        const { user } = context.switchToHttp().getRequest<{ user: { name: string; roles: string[] } }>();
        return (action === 'view' || user.roles.includes('ops')) && { by: user.name };
      },
    }),
  ],
})
export class AppModule {}
// #endregion

export const withPassword = (): object =>
  // #region dashboard-password
  DistributedLockDashboardModule.forRoot({
    authorize: basicAuth({ user: 'ops', password: process.env.DASHBOARD_PASSWORD ?? '' }),
  });
// #endregion
