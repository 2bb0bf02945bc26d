import { Inject, Injectable, Logger, Module, type DynamicModule, type ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  DistributedLock,
  DistributedLockModule,
  InjectLocks,
  Locks,
  locksToken,
  type DistributedLockOptionsFactory,
  type LockLogger,
} from 'nestjs-distributed-lock';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { boot, isTaken, start } from './boot.js';
import { Gate } from '../support/gate.js';

@Injectable()
class Stock {
  where: string[] = [];
  constructor(@Inject(Locks) readonly locks: Locks) {}

  @DistributedLock()
  async reduce() {
    return isTaken(this.locks.store, 'app:Stock.reduce-locks');
  }
}

@Injectable()
class Config implements DistributedLockOptionsFactory {
  readonly store = memoryStore();
  async createDistributedLockOptions() {
    return { store: this.store, namespace: 'app:', logger: false as const };
  }
}
@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}

const appOf = (...imports: NonNullable<ModuleMetadata['imports']>) => start(Test.createTestingModule({ imports, providers: [Stock] }));
const options = () => ({ store: memoryStore(), logger: false as const });

describe('DistributedLockModule', () => {
  it.each<[string, () => DynamicModule]>([
    ['forRoot', () => DistributedLockModule.forRoot({ ...options(), namespace: 'app:' })],
    ['forRootAsync with a factory', () => DistributedLockModule.forRootAsync({ useFactory: () => ({ ...options(), namespace: 'app:' }) })],
    [
      'forRootAsync with an async factory that is injected into',
      () =>
        DistributedLockModule.forRootAsync({
          imports: [ConfigModule],
          inject: [Config],
          useFactory: (config: Config) => config.createDistributedLockOptions(),
        }),
    ],
    ['forRootAsync with a class', () => DistributedLockModule.forRootAsync({ useClass: Config })],
    ['forRootAsync with an existing provider', () => DistributedLockModule.forRootAsync({ imports: [ConfigModule], useExisting: Config })],
  ])('locks with %s', async (_how, module) => {
    const app = await appOf(module());
    expect(await app.get(Stock).reduce()).toBe(true);
  });

  it('hands useExisting the provider itself, not a second one', async () => {
    const app = await appOf(ConfigModule, DistributedLockModule.forRootAsync({ imports: [ConfigModule], useExisting: Config }));
    expect(app.get(Locks).store).toBe(app.get(Config, { strict: false }).store);
  });

  it('is there in every module of the app, however deep', async () => {
    @Module({ providers: [Stock] })
    class Deep {}
    @Module({ imports: [Deep] })
    class Middle {}
    const app = await start(
      Test.createTestingModule({ imports: [Middle, DistributedLockModule.forRoot({ ...options(), namespace: 'app:' })] }),
    );
    expect(await app.get(Stock, { strict: false }).reduce()).toBe(true);
  });

  it('provides Locks', async () => {
    const { get, locks, app } = await boot({ providers: [Stock] });
    expect(locks).toBeInstanceOf(Locks);
    expect([get(Stock).locks, app.get(locksToken())]).toEqual([locks, locks]);
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
    const second = DistributedLockModule.forRootAsync({ name: 'second', useFactory: options });
    const imports = [DistributedLockModule.forRoot(options()), second];
    const both = (await start(Test.createTestingModule({ imports, providers: [Both] }))).get(Both);
    expect(both.first).not.toBe(both.second);
    expect(await both.inFirst()).toEqual([true, false]);
    expect(await both.inSecond()).toEqual([false, true]);
    expect(await both.inBoth()).toEqual([true, true]);
  });

  it('may hold no store but named ones', async () => {
    class Named {
      @DistributedLock({ store: 'only' })
      async run() {
        return 'done';
      }
    }
    const imports = [DistributedLockModule.forRoot({ ...options(), name: 'only' })];
    const app = await start(Test.createTestingModule({ imports, providers: [Named] }));
    expect(await app.get(Named).run()).toBe('done');
  });

  it('tells of lost leases to Nest’s logger, to one of your own, or to nobody', async () => {
    const lines: unknown[][] = [];
    const logger = {
      log: () => undefined,
      warn: (...line: unknown[]) => lines.push(line),
      error: (...line: unknown[]) => lines.push(line),
    };
    const lose = async (said?: LockLogger | false) => {
      const { store, locks } = await boot({}, { logger: said });
      Logger.overrideLogger(said === undefined ? logger : false);
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

describe('a slow wait in an app', () => {
  it('is logged with the methods of both callers', async () => {
    class Shop {
      readonly sold = new Gate();
      @DistributedLock({ value: 'stock', waitTimeout: 5000 })
      async nightly() {
        await this.sold.pass();
      }
      @DistributedLock({ value: 'stock', waitTimeout: 5000 })
      async reduce() {
        return 'reduced';
      }
    }
    const lines: string[] = [];
    const logger = { warn: (line: string) => void lines.push(line), error: () => undefined };
    const { get, waiting } = await boot({ providers: [Shop] }, { logger, slowWait: 50, logKeys: 'none' });
    const shop = get(Shop);
    const nightly = shop.nightly();
    await eventually(() => shop.sold.arrived > 0);
    const reduce = shop.reduce();
    await eventually(() => waiting.length > 0 && lines.length > 0);
    expect(lines).toEqual([
      expect.stringMatching(/^Shop\.reduce has waited \d+ ms for a key, held for \d+ ms by .+ \(Shop\.nightly\); 1 waits here$/),
    ]);
    shop.sold.open();
    await Promise.all([nightly, reduce]);
  });
});
