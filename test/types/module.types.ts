// Never run: `tsc` checks it, where each `@ts-expect-error` must stand above an error.
import { Inject, Injectable } from '@nestjs/common';
import { DistributedLockModule, InjectLocks, Locks, type DistributedLockOptionsFactory } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';

const store = memoryStore();

@Injectable()
class Config implements DistributedLockOptionsFactory {
  createDistributedLockOptions() {
    return { store };
  }
}
class Other {}

export const right = [
  DistributedLockModule.forRoot({ store }),
  DistributedLockModule.forRoot({ store, name: 'second', namespace: 'shop:', shutdownTimeout: 0, logger: false }),
  DistributedLockModule.forRoot({ store, logger: console, defaults: { keyTimeout: 10_000, paramLock: true, onTimeout: 'skip' } }),
  DistributedLockModule.forRootAsync({ useFactory: () => ({ store }) }),
  DistributedLockModule.forRootAsync({ inject: [Config], useFactory: async (config: Config) => config.createDistributedLockOptions() }),
  DistributedLockModule.forRootAsync({ name: 'second', imports: [Other], useClass: Config }),
  DistributedLockModule.forRootAsync({ useExisting: Config }),
];

export const wrong = [
  // @ts-expect-error no options
  DistributedLockModule.forRoot(),
  // @ts-expect-error no store
  DistributedLockModule.forRoot({}),
  // @ts-expect-error a store is meant
  DistributedLockModule.forRoot({ store: 'redis://localhost' }),
  // @ts-expect-error unknown option
  DistributedLockModule.forRoot({ store, defaults: { ttl: 5 } }),
  // @ts-expect-error text
  DistributedLockModule.forRoot({ store, shutdownTimeout: '5s' }),
  // @ts-expect-error half a logger
  DistributedLockModule.forRoot({ store, logger: { warn: () => undefined } }),
  // @ts-expect-error no store
  DistributedLockModule.forRootAsync({ useFactory: () => ({}) }),
  // @ts-expect-error no factory
  DistributedLockModule.forRootAsync({ useClass: Other }),
  // @ts-expect-error no factory
  DistributedLockModule.forRootAsync({ useExisting: Other }),
];

@Injectable()
export class Injected {
  @InjectLocks('third')
  readonly third!: Locks;

  constructor(
    @Inject(Locks) readonly locks: Locks,
    @InjectLocks() readonly first: Locks,
    @InjectLocks('second') readonly second: Locks,
    // @ts-expect-error a name is text
    @InjectLocks(2) readonly wrong: Locks,
  ) {}
}
