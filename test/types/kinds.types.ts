// Never run: `tsc` checks it, where each `@ts-expect-error` must stand above an error.
import { of } from 'rxjs';
import {
  LeaderOnly,
  ReadLock,
  Semaphore,
  WriteLock,
  type DistributedLockModuleOptions,
  type LeaderOnlyOptions,
  type LockStore,
  type ReadWriteDecoratorOptions,
  type SemaphoreDecoratorOptions,
} from 'nestjs-distributed-lock';

interface Product {
  id: number;
  sku: string;
}

export class Compiles {
  @ReadLock()
  async read() {}
  @WriteLock<Compiles['write']>({ key: (product, units) => [product.sku, units], policy: 'writers' })
  async write(_product: Product, _units: number) {}
  @Semaphore<Compiles['print']>({ permits: 3, count: 2, key: (product) => product.id })
  async print(_product: Product) {}
  @Semaphore({ permits: 3, paramLock: ['0.sku'] })
  async *rows(_product: Product) {
    yield 1;
  }
  @LeaderOnly('jobs', { onLost: 'ignore', returns: 'observable', store: 'other', retryInterval: 5 })
  watch() {
    return of(1);
  }
  @LeaderOnly('jobs')
  @ReadLock({ paramLock: true })
  @WriteLock({ value: 'b' })
  @Semaphore({ permits: 1 })
  protected async all(_product: Product) {}
}

export class Refused {
  // @ts-expect-error no such property
  @WriteLock<Refused['write']>({ key: (product) => product.colour })
  async write(_product: Product) {}

  // @ts-expect-error the parameter is a Product
  @Semaphore({ permits: 1, key: (sku: string) => sku })
  async other(_product: Product) {}

  // @ts-expect-error no name
  @LeaderOnly()
  async nameless() {}
}

export const wrong: [ReadWriteDecoratorOptions[], SemaphoreDecoratorOptions[], LeaderOnlyOptions[], DistributedLockModuleOptions] = [
  [
    // @ts-expect-error another word
    { policy: 'first' },
  ],
  [
    // @ts-expect-error text
    { permits: '5' },
    // @ts-expect-error of read and write locks
    { permits: 5, policy: 'fair' },
  ],
  [
    // @ts-expect-error the key is by name
    { value: 'jobs' },
    // @ts-expect-error it is always to skip
    { onTimeout: 'throw' },
    // @ts-expect-error nor does it wait
    { waitTimeout: 5 },
  ],
  // @ts-expect-error no default of all methods
  { store: {} as LockStore, defaults: { permits: 5 } },
];
