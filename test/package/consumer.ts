// A user's program, type-checked against the packed package in every module mode.
import { Injectable, Module } from '@nestjs/common';
import { Redis } from 'ioredis';
import { currentLease, DistributedLock, DistributedLockModule, LockTimeoutError } from 'nestjs-distributed-lock';
import { type Lease, Locks } from 'nestjs-distributed-lock/core';
import { fileStore } from 'nestjs-distributed-lock/file';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { openTelemetry } from 'nestjs-distributed-lock/opentelemetry';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { prometheus } from 'nestjs-distributed-lock/prometheus';
import { recordStore, type RecordTable } from 'nestjs-distributed-lock/records';
import { redisStore } from 'nestjs-distributed-lock/redis';

@Injectable()
export class StockService {
  constructor(private readonly locks: Locks) {}

  @DistributedLock({ prefix: 'shop-', value: 'stock', paramLock: true, keyTimeout: 10_000, retryCount: 0, retryInterval: 200 })
  async reduce(sku: string, amount: number): Promise<string> {
    const lease: Lease | undefined = currentLease();
    lease?.assertHeld();
    return `${sku} ${amount}`;
  }

  @DistributedLock<StockService['count']>({ key: (sku, shelf) => [sku, shelf] })
  async count(sku: string, shelf: number): Promise<number> {
    return this.locks.using(`${sku}:${shelf}`, async (lease) => lease.fencingToken ?? 0, { waitTimeout: 2000 });
  }

  // @ts-expect-error a misspelt option
  @DistributedLock({ keyTimeOut: 10_000 })
  async misspelt(): Promise<void> {}

  // @ts-expect-error the key function takes the method's parameters
  @DistributedLock<StockService['count']>({ key: (sku: number) => sku })
  async mistyped(sku: string, shelf: number): Promise<number> {
    return sku.length + shelf;
  }
}

@Module({
  imports: [
    DistributedLockModule.forRoot({ store: redisStore({ url: 'redis://localhost:6379' }), namespace: 'shop:' }),
    DistributedLockModule.forRootAsync({
      name: 'other',
      useFactory: () => ({ store: memoryStore(), telemetry: [openTelemetry({ keys: true }), prometheus()] }),
    }),
  ],
  providers: [StockService],
})
export class AppModule {}

export async function withoutNest(signal: AbortSignal): Promise<number | null> {
  const locks = new Locks(memoryStore(), { namespace: 'shop:' });
  try {
    await using lease = await locks.acquire('order:42', { keyTimeout: 5000, waitTimeout: 2000, signal });
    const second: Lease | null = await locks.tryAcquire('order:42');
    return second ? second.remaining() : lease.fencingToken;
  } catch (error) {
    if (error instanceof LockTimeoutError) return error.code.length;
    throw error;
  } finally {
    await locks.close();
  }
}

/** Each store, and one of a table of the user's own. */
export const stores = (table: RecordTable) => [
  redisStore({ client: new Redis() }),
  postgresStore({ url: 'postgres://localhost/shop' }),
  mysqlStore({ url: 'mysql://localhost/shop' }),
  fileStore({ directory: '/tmp/locks' }),
  recordStore(table),
];

/** A user's own lease, for unit tests of code that takes one. */
export const fake: Lease = {
  key: 'order:42',
  owner: 'test',
  fencingToken: 1,
  signal: new AbortController().signal,
  remaining: () => 1000,
  assertHeld: () => undefined,
  renew: async () => undefined,
  handOver: async () => 'ndl1.',
  release: async () => true,
  [Symbol.asyncDispose]: async () => undefined,
};
