// A user's test of a locked service, as the test runners of Nest's own starters run it.
import { Inject, Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { currentLease, DistributedLock, DistributedLockModule, Locks, LockTimeoutError } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';

@Injectable()
class Shelf {
  left = 10;
}

@Injectable()
class StockService {
  // By name: Vitest 3 knows no types of parameters.
  constructor(@Inject(Shelf) private readonly shelf: Shelf) {}

  @DistributedLock({ value: 'stock', key: (sku: string) => sku, keyTimeout: 60_000, retryCount: 0 })
  async reduce(sku: string): Promise<string> {
    const { left } = this.shelf;
    await new Promise((resolve) => setTimeout(resolve, 5));
    this.shelf.left = left - 1;
    return `${sku} under ${currentLease()?.key}`;
  }

  @DistributedLock({ value: 'inventory', waitTimeout: 0 })
  async count(): Promise<number> {
    return this.shelf.left;
  }
}

describe('StockService', () => {
  let module: TestingModule;
  let stock: StockService;

  beforeEach(async () => {
    module = await Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ store: memoryStore() })],
      providers: [Shelf, StockService],
    }).compile();
    await module.init();
    stock = module.get(StockService);
  });
  afterEach(() => module.close());

  it('runs one call at a time, each under its lock', async () => {
    const replies = await Promise.all(Array.from({ length: 4 }, () => stock.reduce('apple')));
    expect(replies).toEqual(Array(4).fill('apple under stock-apple-locks'));
    expect(module.get(Shelf).left).toBe(6);
  });

  it('refuses a call while another holds the key', async () => {
    const lease = await module.get(Locks).acquire('inventory-locks', { keyTimeout: 60_000 });
    await expect(stock.count()).rejects.toThrow(LockTimeoutError);
    await lease.release();
    expect(await stock.count()).toBe(10);
  });
});
