import '../support/virtual-time.js';
import type { CallHandler, DynamicModule, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { Inject, Injectable, Logger, Module } from '@nestjs/common';
import { ModulesContainer, Reflector } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { EMPTY, from, lastValueFrom, map, Observable, of, throwError, toArray } from 'rxjs';
import {
  currentLease,
  DistributedLock,
  DistributedLockInterceptor,
  DistributedLockModule,
  InjectLocks,
  LockConfigError,
  Locks,
  type DistributedLockOptionsFactory,
  type LockLogger,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { LockRegistry } from '../../lib/nest/lock-registry.js';
import { boot, isTaken, start, type Booted } from './boot.js';

@Injectable()
class Stock {
  constructor(@Inject(Locks) readonly locks: Locks) {}

  @DistributedLock()
  async reduce() {
    return isTaken(this.locks.store, 'app:Stock.reduce-locks');
  }
}
@Module({ providers: [Stock] })
class StockModule {}
@Module({ imports: [StockModule] })
class DeepModule {}

const options = () => ({ store: memoryStore(), logger: false as const });
const { forRoot, forRootAsync } = DistributedLockModule;
const inApp = () => ({ ...options(), namespace: 'app:' });

@Injectable()
class Config implements DistributedLockOptionsFactory {
  readonly store = memoryStore();
  async createDistributedLockOptions() {
    return { ...inApp(), store: this.store };
  }
}
@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}
const configured = { imports: [ConfigModule], inject: [Config], useFactory: (config: Config) => config.createDistributedLockOptions() };

describe('DistributedLockModule', () => {
  it.each<[string, () => DynamicModule]>([
    ['forRoot', () => forRoot(inApp())],
    ['forRootAsync with a factory', () => forRootAsync({ useFactory: inApp })],
    ['forRootAsync with an async factory that is injected into', () => forRootAsync(configured)],
    ['forRootAsync with a class', () => forRootAsync({ useClass: Config })],
    ['forRootAsync with an existing provider', () => forRootAsync({ imports: [ConfigModule], useExisting: Config })],
  ])('locks with %s, in every module of the app, however deep', async (_how, module) => {
    const app = await start(Test.createTestingModule({ imports: [module(), DeepModule] }));
    expect(await app.get(Stock, { strict: false }).reduce()).toBe(true);
  });

  it('hands useExisting the provider itself, not a second one', async () => {
    const imports = [ConfigModule, forRootAsync({ imports: [ConfigModule], useExisting: Config })];
    const app = await start(Test.createTestingModule({ imports }));
    expect(app.get(Locks).store).toBe(app.get(Config, { strict: false }).store);
  });

  it('holds several stores under several names', async () => {
    @Injectable()
    class Both {
      constructor(
        @InjectLocks() readonly first: Locks,
        @InjectLocks('second') readonly second: Locks,
      ) {}
      @DistributedLock({ value: 'key' })
      async inFirst() {
        return this.taken();
      }
      @DistributedLock({ value: 'key', store: 'second' })
      async inSecond() {
        return this.taken();
      }
      @DistributedLock({ value: 'key' })
      async inBoth(): Promise<boolean[]> {
        return this.inSecond();
      }
      private taken() {
        return Promise.all([isTaken(this.first.store, 'key-locks'), isTaken(this.second.store, 'key-locks')]);
      }
    }
    const imports = [forRoot(options()), forRootAsync({ name: 'second', useFactory: options })];
    const both = (await start(Test.createTestingModule({ imports, providers: [Both] }))).get(Both);
    expect(both.first).not.toBe(both.second);
    expect([await both.inFirst(), await both.inSecond(), await both.inBoth()]).toEqual([
      [true, false],
      [false, true],
      [true, true],
    ]);
  });

  it('reports lost leases to Nest’s logger, to one of your own, or to nobody', async () => {
    const lines: unknown[][] = [];
    const write = (...line: unknown[]) => void lines.push(line);
    const logger = { log: () => undefined, warn: write, error: write };
    const lose = async (own?: LockLogger | false) => {
      const { store, locks } = await boot({}, { logger: own });
      Logger.overrideLogger(own === undefined ? logger : false);
      const lease = await locks.acquire('key');
      await store.mutex.release({ key: 'key', owner: lease.owner, keepFor: 0 });
      await lease.release();
      return lines.splice(0);
    };
    expect(await lose()).toEqual([[expect.stringMatching(/^Lost "key"/), 'DistributedLock']]);
    expect(await lose(logger)).toEqual([[expect.stringMatching(/^Lost "key"/)]]);
    expect(await lose(false)).toEqual([]);
  });
});

describe('two copies of the package in one app', () => {
  /** The registry that a feature library has in an app when it brings its own copy of the package along. */
  async function registryOfAnotherCopyIn({ app }: Booted, version?: number): Promise<LockRegistry> {
    let Copy!: typeof LockRegistry;
    await jest.isolateModulesAsync(async () => {
      const processWide = '../../lib/core/util/process-wide.js';
      if (version) jest.doMock(processWide, () => ({ ...jest.requireActual<object>(processWide), EXCHANGED: version }));
      Copy = (await import('../../lib/nest/lock-registry.js')).LockRegistry;
      jest.dontMock(processWide);
    });
    expect(Copy).not.toBe(LockRegistry);
    return new Copy(app.get(ModulesContainer));
  }

  it('know the stores that the other one registers, and refuse a name that it has taken', async () => {
    const booted = await boot({});
    const other = await registryOfAnotherCopyIn(booted);
    expect(() => other.register('default', options())).toThrow(/imported twice for the store "default"/);
    other.register('feature', options());
    expect(() => booted.app.get(LockRegistry).register('feature', options())).toThrow(LockConfigError);
  });

  it('share no store where what they would share has another shape', async () => {
    const booted = await boot({});
    const other = await registryOfAnotherCopyIn(booted, 2);
    const locks = other.register('default', options());
    expect(locks).not.toBe(booted.locks);
    await locks.close();
  });

  it('do not share the stores of two apps', async () => {
    const [first, second] = [await boot({}), await boot({})];
    const ofFirst = (await registryOfAnotherCopyIn(first)).register('feature', options());
    // The name is free in the second app, for its own copy as for another, and stands for another store.
    const ofSecond = second.app.get(LockRegistry).register('feature', options());
    const stranger = await registryOfAnotherCopyIn(second);
    expect(() => stranger.register('feature', options())).toThrow(/"feature"/);
    const held = await ofFirst.acquire('key', { keyTimeout: 60_000 });
    expect(await ofSecond.tryAcquire('key')).not.toBeNull();
    // What the first app closes at its end is not the second's.
    await held.release();
    await first.app.close();
    await expect(ofFirst.acquire('other')).rejects.toHaveProperty('name', 'LockAbortedError');
    expect(await ofSecond.using('other', () => 'open')).toBe('open');
  });
});

describe('DistributedLockInterceptor', () => {
  @Injectable()
  class Shop {
    @(Reflector.createDecorator<string>({ key: 'colour' })('red'))
    @DistributedLock({ paramLock: true })
    async sell(sku: string, _units: number) {
      return `${sku} ${currentLease() ? 'locked' : 'unlocked'}`;
    }
    @DistributedLock()
    watch(): Observable<unknown> {
      return of(1, 2);
    }
    @DistributedLock()
    async *list() {
      yield 1;
      yield 2;
    }
  }

  /** An app whose aspect a test has put another in the place of, which notes its calls. */
  async function bootWith(intercept: NestInterceptor['intercept']) {
    const contexts: ExecutionContext[] = [];
    const noting: NestInterceptor['intercept'] = (context, next) => (contexts.push(context), intercept(context, next));
    const providers = [Shop, { provide: 'made', useFactory: () => new Shop() }];
    const builder = Test.createTestingModule({ imports: [forRoot(options())], providers });
    const app = await start(builder.overrideProvider(DistributedLockInterceptor).useValue({ intercept: noting }));
    return { shop: app.get(Shop), made: app.get<Shop>('made'), contexts };
  }

  it('is one aspect for promises, Observables and iterables, called by the join point, and may be overridden to let calls pass unlocked', async () => {
    const { shop, made, contexts } = await bootWith((_context, next) => next.handle());
    expect([await shop.sell('apple', 2), await made.sell('pear', 1)]).toEqual(['apple unlocked', 'pear unlocked']);
    expect(await lastValueFrom(shop.watch())).toBe(2);
    expect(await lastValueFrom(from(shop.list()).pipe(toArray()))).toEqual([1, 2]);
    expect(contexts.map((each) => each.getHandler().name)).toEqual(['sell', 'sell', 'watch', 'list']);
    const [context] = contexts;
    expect([context?.getType<string>(), context?.getClass(), context?.getHandler()]).toEqual(['method', Shop, Shop.prototype.sell]);
    expect([context?.getArgs(), context?.getArgByIndex(1)]).toEqual([['apple', 2], 2]);
    expect(new Reflector().get<string>('colour', context!.getHandler())).toBe('red');
  });

  it('may be overridden by one that answers itself, late or never', async () => {
    const instead = await bootWith(() => of('instead'));
    expect(await instead.shop.sell('apple', 2)).toBe('instead');
    const late = await bootWith(async (_context, next) => next.handle().pipe(map((value) => `late ${String(value)}`)));
    expect(await late.shop.sell('apple', 2)).toBe('late apple unlocked');
    const silent = await bootWith(() => EMPTY);
    expect(await silent.shop.sell('apple', 2)).toBeUndefined();
    const refusing = await bootWith(() => throwError(() => new Error('closed')));
    await expect(refusing.shop.sell('apple', 2)).rejects.toThrow('closed');
  });

  it('lets calls of other types pass', async () => {
    const { app, acquired } = await boot({});
    const next: CallHandler = { handle: () => of('passed') };
    for (const type of ['http', 'rpc', 'ws', 'graphql']) {
      const context = { getType: () => type } as unknown as ExecutionContext;
      expect(await lastValueFrom(app.get(DistributedLockInterceptor).intercept(context, next))).toBe('passed');
    }
    expect(acquired).toEqual([]);
  });
});
