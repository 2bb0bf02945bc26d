import { Global, Inject, Injectable, Module, Scope, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { DistributedLock, DistributedLockModule } from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { boot, start } from './boot.js';
import { Tally } from './tally.js';

const PATIENT = { retryCount: 0, retryInterval: 2, value: 'stock' };

/** Shared by all instances of a test, which only their lock keeps apart. */
let tally: Tally;
beforeEach(() => (tally = new Tally()));

@Injectable()
class Stock {
  @DistributedLock(PATIENT)
  async reduce(_sku?: string) {
    return tally.add();
  }
  /** Calls the locked method by way of `this`. */
  async reduceTwice() {
    await Promise.all([this.reduce(), this.reduce()]);
  }
}
@Injectable({ scope: Scope.REQUEST })
class RequestStock extends Stock {}
@Injectable({ scope: Scope.TRANSIENT })
class TransientStock extends Stock {}

/** Six calls at once, over all instances. */
async function crowd(stocks: Stock[]) {
  await Promise.all(Array.from({ length: 6 }, async (_, index) => stocks[index % stocks.length]?.reduce()));
  expect(tally).toMatchObject({ value: 6, most: 1 });
}

describe('a locked method of a provider', () => {
  it.each([
    ['useClass', { provide: 'stock', useClass: Stock }],
    ['useFactory', { provide: 'stock', useFactory: () => new Stock() }],
    ['an async useFactory', { provide: 'stock', useFactory: async () => new Stock() }],
    ['useFactory with a subclass', { provide: 'stock', useFactory: () => new (class extends Stock {})() }],
    ['useValue', { provide: 'stock', useValue: new Stock() }],
  ])('is locked with %s', async (_how, provider) => {
    const { app, acquired } = await boot({ providers: [provider] });
    await crowd([app.get<Stock>('stock')]);
    expect(new Set(acquired)).toEqual(new Set(['stock-locks']));
  });

  it('is locked with useExisting, of a class and of a factory', async () => {
    const providers = [
      { provide: 'made', useFactory: () => new Stock() },
      { provide: 'alias', useExisting: 'made' },
      Stock,
      { provide: 'other', useExisting: Stock },
    ];
    const { app } = await boot({ providers });
    expect(app.get('alias')).toBe(app.get('made'));
    await crowd(['alias', 'other'].map((token) => app.get<Stock>(token)));
  });

  it('is locked in request scope, between requests too', async () => {
    const { app } = await boot({ providers: [RequestStock] });
    const stocks = await Promise.all([app.resolve(RequestStock), app.resolve(RequestStock)]);
    expect(stocks[0]).not.toBe(stocks[1]);
    await crowd(stocks);
  });

  it('is locked in transient scope', async () => {
    class Shop {
      constructor(@Inject(TransientStock) readonly stock: TransientStock) {}
    }
    class Depot extends Shop {}
    const { get } = await boot({ providers: [TransientStock, Shop, Depot] });
    const [first, second] = [get(Shop).stock, get(Depot).stock];
    expect(first).not.toBe(second);
    await crowd([first, second]);
  });

  it.each([
    ['a factory makes for a request', Scope.REQUEST, () => new Stock()],
    ['an async factory makes for a request', Scope.REQUEST, async () => new Stock()],
    ['a transient factory makes', Scope.TRANSIENT, () => new Stock()],
    ['a transient async factory makes', Scope.TRANSIENT, async () => new Stock()],
  ])('is locked on what %s', async (_what, scope, useFactory) => {
    const { app } = await boot({ providers: [{ provide: 'stock', scope, useFactory }] });
    const stocks = await Promise.all([app.resolve<Stock>('stock'), app.resolve<Stock>('stock')]);
    expect(stocks[0]).not.toBe(stocks[1]);
    await crowd(stocks);
  });

  it('is locked on what a factory makes of a provider of request scope', async () => {
    const { app } = await boot({ providers: [RequestStock, { provide: 'stock', inject: [RequestStock], useFactory: () => new Stock() }] });
    const stocks = await Promise.all([app.resolve<Stock>('stock'), app.resolve<Stock>('stock')]);
    expect(stocks[0]).not.toBe(stocks[1]);
    await crowd(stocks);
  });

  it('leaves alone a factory whose instance is made once', async () => {
    const useFactory = () => new Stock();
    const { app } = await boot({ providers: [{ provide: 'made', useFactory }] });
    const made = app.get(DiscoveryService, { strict: false }).getProviders();
    expect(made.find(({ name }) => name === 'made')?.metatype).toBe(useFactory);
  });

  it('is locked on what a transient factory made for another provider', async () => {
    class Shop {
      constructor(@Inject('stock') readonly stock: Stock) {}
    }
    class Depot extends Shop {}
    const { get } = await boot({ providers: [{ provide: 'stock', scope: Scope.TRANSIENT, useFactory: () => new Stock() }, Shop, Depot] });
    expect(get(Shop).stock).not.toBe(get(Depot).stock);
    await crowd([get(Shop).stock, get(Depot).stock]);
  });

  it('is locked where the instance calls itself', async () => {
    const { get } = await boot({ providers: [Stock, { provide: 'made', useFactory: () => new Stock() }] });
    await Promise.all([get(Stock).reduceTwice(), get(Stock).reduceTwice(), get(Stock).reduce()]);
    expect(tally).toMatchObject({ value: 5, most: 1 });
  });

  it('is locked on what ModuleRef.create makes', async () => {
    const { app } = await boot({});
    await crowd(await Promise.all([app.get(ModuleRef).create(Stock), app.get(ModuleRef).create(Stock)]));
  });

  it('is locked in a module that is loaded lazily', async () => {
    @Module({ providers: [Stock] })
    class LazyModule {}
    const { app } = await boot({});
    const lazy = await app.get(LazyModuleLoader).load(() => LazyModule);
    await crowd([lazy.get(Stock)]);
  });

  it('is locked on an instance that two modules of the app share', async () => {
    const shared = new Stock();
    const feature = (name: string) => ({ module: class {}, providers: [{ provide: name, useValue: shared }] });
    const { app } = await boot({ imports: [feature('one'), feature('two')] });
    await crowd(['one', 'two'].map((name) => app.get<Stock>(name, { strict: false })));
  });

  it('is locked when hooks of the boot call it', async () => {
    const results: unknown[] = [];
    @Injectable()
    class Starter implements OnModuleInit, OnApplicationBootstrap {
      constructor(
        @Inject(Stock) private readonly stock: Stock,
        @Inject('made') private readonly made: Stock,
      ) {}
      async onModuleInit() {
        results.push(await Promise.all([this.stock.reduce(), this.made.reduce()]));
      }
      async onApplicationBootstrap() {
        results.push(await Promise.all([this.stock.reduce(), this.made.reduce()]));
      }
    }
    @Module({ providers: [Stock, { provide: 'made', useFactory: () => new Stock() }, Starter] })
    class Deep {}
    @Module({ imports: [Deep] })
    class Middle {}
    await boot({ imports: [Middle] });
    expect(results.map((pair) => (pair as number[]).toSorted())).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(tally.most).toBe(1);
  });

  it('is locked in a hook that comes before those of the locks', async () => {
    const results: unknown[] = [];
    @Injectable()
    class Early implements OnModuleInit {
      constructor(
        @Inject(Stock) private readonly stock: Stock,
        @Inject('made') private readonly made: Stock,
      ) {}
      async onModuleInit() {
        for (const stock of [this.stock, this.made]) results.push(await stock.reduce().catch((error: unknown) => error));
      }
    }
    @Global()
    @Module({ providers: [Stock, { provide: 'made', useFactory: () => new Stock() }, Early] })
    class First {}
    const forRoot = DistributedLockModule.forRoot({ store: memoryStore(), logger: false });
    await start(Test.createTestingModule({ imports: [First, forRoot] }));
    expect(results).toEqual([1, 2]);
    expect(tally.most).toBe(1);
  });

  it('may itself be a hook', async () => {
    @Injectable()
    class Migration {
      @DistributedLock({ value: 'migration' })
      async onModuleInit() {
        await tally.add();
      }
      @DistributedLock({ value: 'warm-up' })
      async onApplicationBootstrap() {
        await tally.add();
      }
    }
    await boot({ providers: [Migration] });
    expect(tally.value).toBe(2);
  });
});
