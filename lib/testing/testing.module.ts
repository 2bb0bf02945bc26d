import { type DynamicModule, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { TestingModuleBuilder } from '@nestjs/testing';
import type { LockStore } from '../core/store/lock-store.js';
import { Locks } from '../locks.js';
import { DistributedLockModule } from '../nest/distributed-lock.module.js';
import { type DistributedLockModuleOptions, type DistributedLockOptions, locksOptionsOf } from '../nest/distributed-lock.options.js';
import { LockRegistry } from '../nest/lock-registry.js';
import { memoryStore } from '../stores/memory/memory.store.js';
import { faultsOf, faultyStore } from './faulty.store.js';
import { LockProbe } from './lock-probe.js';
import { StoreFaults } from './store-faults.js';

/** Options of {@link DistributedLockTestingModule.forRoot}. */
export interface DistributedLockTestingOptions {
  /** Default: `memoryStore()`. It is put behind faults, unless it has some. */
  store?: LockStore;
  /** Options of decorators, as in the app, for all methods that do not set it themselves. */
  defaults?: DistributedLockOptions;
  /** The namespace, as in the app. Default: nothing. */
  namespace?: string;
}

/**
 * The locks of a test: in memory, without a log, with a {@link LockProbe} that records them, and with faults. No call waits indefinitely: after 5 s it
 * gets its `LockTimeoutError`, or is skipped.
 */
@Module({})
export class DistributedLockTestingModule {
  /** In place of the app's `DistributedLockModule.forRoot()`: `imports: [DistributedLockTestingModule.forRoot()]`. */
  static forRoot({ store = memoryStore(), ...options }: DistributedLockTestingOptions = {}): DynamicModule {
    return {
      module: DistributedLockTestingModule,
      global: true,
      imports: [DistributedLockModule.forRoot({ ...options, store: faultsOf(store) ? store : faultyStore(store), logger: false })],
      providers: [{ provide: LockProbe, useFactory: (locks: Locks) => new LockProbe(limited(locks)), inject: [Locks] }],
      exports: [LockProbe],
    };
  }

  /**
   * For a test of a whole app: its own modules of locks get a store in memory for each of theirs, and keep their names, namespaces and defaults.
   * `await DistributedLockTestingModule.replace(Test.createTestingModule({ imports: [AppModule] })).compile()`
   */
  static replace(builder: TestingModuleBuilder): TestingModuleBuilder {
    return builder
      .overrideProvider(LockRegistry)
      .useFactory({ factory: (app: ModulesContainer) => new TestingRegistry(app), inject: [ModulesContainer] });
  }
}

/** Registers stores in memory in place of those of the app. */
class TestingRegistry extends LockRegistry {
  private readonly faults = new StoreFaults();
  private readonly probe = new LockProbe();

  constructor(app: ModulesContainer) {
    super(app);
    // The app has no provider for it that could be overridden.
    for (const module of app.values()) {
      if (!module.hasProvider(LockRegistry)) continue;
      module.addProvider({ provide: LockProbe, useValue: this.probe });
      module.addExportedProviderOrModule?.(LockProbe);
    }
  }

  override register(name: string, options: DistributedLockModuleOptions): Locks {
    const store = faultyStore(memoryStore(), this.faults);
    // Options may be inherited, or getters.
    const { name: given, defaults } = options;
    const own = { ...options, ...locksOptionsOf(options), name: given, defaults };
    const locks = super.register(name, { ...own, store, logger: false, telemetry: undefined, failFast: false });
    this.probe.watch(limited(locks));
    // What the app has opened for its store is closed, but not a client that it passed in.
    void options.store.close().catch(() => undefined);
    return locks;
  }

  override async onApplicationShutdown(): Promise<void> {
    this.probe.onApplicationShutdown();
    await super.onApplicationShutdown();
  }
}

/** Milliseconds. A call that waits indefinitely in the app ends then in a test, and its error names the holder. */
const LONGEST_WAIT = 5_000;

/** The same locks, of which no call waits indefinitely. Candidates of an election do: no caller waits for them. */
function limited(locks: Locks): Locks {
  // All calls pass this method: their options come from decorators, defaults and arguments.
  const queues = locks['engine'].queues;
  const acquire = queues.acquire.bind(queues);
  queues.acquire = (driver, key, id, maxHolders, call) => {
    const isLimited = call.patience < Infinity || call.options.isStandby;
    return acquire(driver, key, id, maxHolders, isLimited ? call : { ...call, patience: LONGEST_WAIT });
  };
  return locks;
}
