import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { LockConfigError } from '../core/model/errors.js';
import { completeOptions } from '../core/model/options.js';
import { after } from '../core/util/clock.js';
import { processWide } from '../core/util/process-wide.js';
import { LockLog } from '../core/model/lock-log.js';
import { Locks } from '../locks.js';
import { checkModuleOptions, coreOptionsOf, type DistributedLockModuleOptions } from './distributed-lock.options.js';
import { DEFAULT_NAME } from './distributed-lock.tokens.js';
import { LeaderCandidates } from './leader/leader-candidates.js';
import { lockedMethodsOf, type LockDefinition } from './decorators/lock-definition.js';
import { planLock, type LockPlan, type Registered } from './aspect/lock-plan.js';
import { StoreChecks } from './boot/store-checks.js';
import { adviceOnName, LockUses } from './boot/lock-uses.js';

/** The stores of each app. A feature library with its own copy of this package may register a store in the same app. */
const storesOf = processWide('stores', () => new WeakMap<object, Map<string, Registered>>());

/** Milliseconds. Many apps enable their shutdown hooks after they begin to listen, so the check for them waits. */
const GRACE = 1_000;

/** The stores of one app, by name. */
@Injectable()
export class LockRegistry implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly stores: Map<string, Registered>;
  private readonly plans = new WeakMap<LockDefinition, LockPlan>();
  private readonly uses = new LockUses();
  private readonly candidates = new LeaderCandidates();
  private readonly storeChecks = new StoreChecks();
  private signalCheck: NodeJS.Timeout | undefined;

  constructor(@Inject(ModulesContainer) app: ModulesContainer) {
    this.stores = storesOf.get(app) ?? new Map<string, Registered>();
    storesOf.set(app, this.stores);
  }

  register(name: string, options: DistributedLockModuleOptions): Locks {
    checkModuleOptions(options, true);
    if ((options.name ?? name) !== name) {
      throw new LockConfigError(
        `DistributedLockModule: the name "${options.name}" must be given to forRootAsync() itself, beside the factory.`,
      );
    }
    if (this.stores.has(name)) {
      throw new LockConfigError(
        `DistributedLockModule: forRoot() is imported twice for the store "${name}". It is global: import it once, in the root module. ` +
          'A second store needs a "name" of its own.',
      );
    }
    const {
      store,
      namespace = '',
      app,
      visible,
      defaults = {},
      shutdownTimeout,
      localQueue,
      logger = new Logger('DistributedLock'),
    } = options;
    const { logKeys, slowWait, telemetry, failFast = false } = options;
    const ofLocks = coreOptionsOf(defaults);
    const locks = new Locks(store, {
      namespace,
      app,
      visible,
      defaults: ofLocks,
      shutdownTimeout,
      localQueue,
      logger,
      logKeys,
      slowWait,
      telemetry,
    });
    this.storeChecks.add(locks, name === DEFAULT_NAME ? undefined : name, failFast);
    locks.keyFinder = (type: { readonly prototype: unknown; readonly name: string }, method, args) => this.keyOf(locks, type, method, args);
    this.stores.set(name, { locks, log: new LockLog(logger, logKeys), defaults, complete: completeOptions(ofLocks), namespace });
    return locks;
  }

  /** @throws {LockConfigError} if its store is not registered, or its options and the defaults do not make a lock together. */
  planOf(definition: LockDefinition): LockPlan {
    let plan = this.plans.get(definition);
    if (!plan) {
      plan = this.plan(definition);
      this.plans.set(definition, plan);
    }
    return plan;
  }

  async onModuleInit(): Promise<void> {
    try {
      await this.storeChecks.run();
    } catch (error) {
      // Nest does not close an app that fails to start, and a client that reconnects would keep the process alive.
      await this.onApplicationShutdown();
      throw error;
    }
  }

  onApplicationBootstrap(): void {
    this.candidates.stand();
    this.signalCheck = after(GRACE, () => this.checkSignals()).unref();
  }

  beforeApplicationShutdown(): void {
    clearTimeout(this.signalCheck);
    for (const { locks } of this.stores.values()) locks.stopWaiting();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.stores.values()].map(({ locks }) => locks.close()));
  }

  private checkSignals(): void {
    if (process.listenerCount('SIGTERM') + process.listenerCount('SIGINT') > 0) return;
    const [first] = this.stores.values();
    first?.log.write(
      'debug',
      'Nothing listens to SIGTERM: locks that are held then stay taken for their keyTimeout. Call app.enableShutdownHooks() to have them drained and released.',
    );
  }

  private keyOf(
    locks: Locks,
    { prototype, name }: { readonly prototype: unknown; readonly name: string },
    method: string | symbol,
    args: readonly unknown[],
  ): string {
    for (let at: unknown = prototype; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
      for (let lock = lockedMethodsOf(at)?.get(method)?.definition; lock; lock = lock.inner) {
        if (this.registeredFor(lock).locks === locks) return this.planOf(lock).keyOf(args);
      }
    }
    throw new LockConfigError(`keyOf: ${name}.${String(method)} has no lock of this store.`);
  }

  private registeredFor({ options, where }: LockDefinition): Registered {
    const name = options.store ?? this.stores.get(DEFAULT_NAME)?.defaults.store ?? DEFAULT_NAME;
    const registered = this.stores.get(name);
    if (!registered) throw new LockConfigError(`${where}: no store is registered under the name "${name}".`);
    return registered;
  }

  private plan(definition: LockDefinition): LockPlan {
    const registered = this.registeredFor(definition);
    if (definition.kind === 'leader') return this.candidates.planFor(definition, registered);
    const plan = planLock(definition, registered);
    for (const advice of [this.uses.add(definition, registered.locks.store, plan), adviceOnName(definition, plan)]) {
      if (advice) plan.log.write('warn', advice, { key: plan.name, keys: [plan.key] });
    }
    return plan;
  }
}
