import { Injectable, Module } from '@nestjs/common';
import { Redis } from 'ioredis';
import { DistributedLock, DistributedLockModule, InjectLocks, Locks } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { redisStore } from 'nestjs-distributed-lock/redis';

@Injectable()
export class Config {
  readonly redisUrl = process.env.REDIS_URL ?? 'redis://localhost:6379';
}

@Module({ providers: [Config], exports: [Config] })
export class ConfigModule {}

// #region for-root-async
@Module({
  imports: [
    DistributedLockModule.forRootAsync({
      imports: [ConfigModule],
      inject: [Config],
      useFactory: (config: Config) => ({
        store: redisStore({ url: config.redisUrl, requestTimeout: 2000 }),
        namespace: 'shop:',
        defaults: { keyTimeout: 20_000, waitTimeout: 5000 },
      }),
    }),
  ],
})
export class LockModule {}
// #endregion

@Module({
  providers: [{ provide: 'REDIS', useFactory: () => new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379') }],
  exports: ['REDIS'],
})
export class RedisModule {}

@Module({
  imports: [
    DistributedLockModule.forRootAsync({
      imports: [RedisModule],
      inject: ['REDIS'],
      useFactory: (client: Redis) => ({ store: redisStore({ client }) }),
    }),
  ],
})
export class SharedClientModule {}

// #region named-stores
@Module({
  imports: [
    DistributedLockModule.forRoot({ store: redisStore({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }) }),
    DistributedLockModule.forRoot({ name: 'local', store: memoryStore() }),
  ],
})
export class TwoStoresModule {}

@Injectable()
export class CacheService {
  constructor(@InjectLocks('local') private readonly locks: Locks) {}

  /** One call at a time in this process; other instances warm up their own cache. */
  @DistributedLock({ store: 'local' })
  async warmUp(): Promise<string> {
    return 'warm';
  }

  async evict(name: string): Promise<string> {
    return this.locks.using(`cache:${name}`, async () => 'evicted');
  }
}
// #endregion
