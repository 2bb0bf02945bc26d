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
import { configError } from '../core/model/errors.js';
import { after } from '../core/util/clock.js';
import { detached } from '../core/util/detached.js';
import { EXCHANGED, processWide } from '../core/util/process-wide.js';
import { Locks } from '../locks.js';
import { checkModuleOptions, locksOptionsOf, type DistributedLockModuleOptions } from './distributed-lock.options.js';
import { DEFAULT_NAME } from './distributed-lock.tokens.js';
import { LeaderCandidates } from './leader/leader-candidates.js';
import { lockedMethodsOf, type LockDefinition } from './decorators/lock-definition.js';
import { planLock, type LockPlan, type Registered } from './aspect/lock-plan.js';
import { advise, adviceOnOptions } from './boot/advice.js';
import { LockUses } from './boot/lock-uses.js';

/** The stores of each app. A feature library with its own copy of this package may register a store in the same app. */
const storesOf = processWide('stores', () => new WeakMap<object, Map<string, Registered>>(), EXCHANGED);

/** Milliseconds. Many apps enable their shutdown hooks after they begin to listen, so the check for them waits. */
const GRACE = 1_000;

/** The stores of one app, by name. */
@Injectable()
export class LockRegistry implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly stores: Map<string, Registered>;
  private readonly plans = new WeakMap<LockDefinition, LockPlan>();
  private readonly uses = new LockUses();
  private readonly candidates = new LeaderCandidates();
  /** Each store of this copy is asked once, at the start: the log then says what it is, or why it cannot be reached. */
  private readonly checks: { readonly check: () => Promise<void>; readonly failFast: boolean }[] = [];

  constructor(@Inject(ModulesContainer) app: ModulesContainer) {
    this.stores = storesOf.get(app) ?? new Map<string, Registered>();
    storesOf.set(app, this.stores);
  }

  /** The locks of all stores, by name. */
  get all(): ReadonlyMap<string, Locks> {
    return new Map([...this.stores].map(([name, { locks }]) => [name, locks]));
  }

  register(name: string, options: DistributedLockModuleOptions): Locks {
    checkModuleOptions(options, true);
    if ((options.name ?? name) !== name) {
      throw configError(
        'MODULE',
        `DistributedLockModule: the name "${options.name}" must be given to forRootAsync() itself, beside the factory.`,
      );
    }
    if (this.stores.has(name)) {
      throw configError(
        'MODULE',
        `DistributedLockModule: forRoot() is imported twice for the store "${name}". It is global: import it once, in the root module. ` +
          'A second store needs a "name" of its own.',
      );
    }
    const { logger = new Logger('DistributedLock'), failFast = false } = options;
    const locks = new Locks(options.store, { ...locksOptionsOf(options), logger });
    this.checks.push({ check: () => locks.checkStore(name === DEFAULT_NAME ? undefined : name), failFast });
    locks.keyFinder = (type: { readonly prototype: unknown; readonly name: string }, method, args) => this.keyOf(locks, type, method, args);
    const { defaults = {} } = options;
    const where = 'DistributedLockModule: "defaults"';
    for (const advice of adviceOnOptions(where, defaults, defaults.key ?? defaults.paramLock, defaults.renew)) locks.log.warn(...advice);
    this.stores.set(name, { locks, log: locks.log, options });
    return locks;
  }

  /** @throws {LockConfigError} if its store is not registered, or its options and the defaults do not make a lock together. */
  planOf(definition: LockDefinition): LockPlan {
    let plan = this.plans.get(definition);
    if (!plan) this.plans.set(definition, (plan = this.plan(definition)));
    return plan;
  }

  async onModuleInit(): Promise<void> {
    const awaited: Promise<void>[] = [];
    for (const { check, failFast } of this.checks) {
      const outcome = detached(check);
      outcome.catch(() => undefined);
      if (failFast) awaited.push(outcome);
    }
    try {
      await Promise.all(awaited);
    } catch (error) {
      // Nest does not close an app that fails to start, and a client that reconnects would keep the process alive.
      await this.onApplicationShutdown();
      throw error;
    }
  }

  onApplicationBootstrap(): void {
    this.candidates.campaign();
    after(GRACE, () => this.checkSignals()).unref();
  }

  beforeApplicationShutdown(): void {
    for (const { locks } of this.stores.values()) locks.stopWaiting();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.stores.values()].map(({ locks }) => locks.close()));
  }

  /** The first grant after it writes the warning: an app that takes no locks needs no hooks. */
  private checkSignals(): void {
    const forget: (() => void)[] = [];
    for (const { locks, log } of this.stores.values()) {
      const warn = (): void => {
        for (const each of forget) each();
        if (process.listenerCount('SIGTERM') > 0) return;
        const message =
          'Nothing listens to SIGTERM: locks that are held then stay taken for their keyTimeout. ' +
          'Call app.enableShutdownHooks(), so that running methods end and their locks are released.';
        log.warn('NDL_SHUTDOWN_HOOKS', message);
      };
      forget.push(locks.on('acquired', warn));
    }
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
    throw configError('MODULE', `keyOf: ${name}.${String(method)} has no lock of this store.`);
  }

  private registeredFor({ options, where }: LockDefinition): Registered {
    const name = options.store ?? this.stores.get(DEFAULT_NAME)?.options.defaults?.store ?? DEFAULT_NAME;
    const registered = this.stores.get(name);
    if (!registered) throw configError('MODULE', `${where}: no store is registered under the name "${name}".`);
    return registered;
  }

  private plan(definition: LockDefinition): LockPlan {
    const registered = this.registeredFor(definition);
    const { kind, where, options } = definition;
    const plan = kind === 'leader' ? this.candidates.planFor(definition, registered) : planLock(definition, registered);
    if (kind !== 'leader') advise(plan, this.uses.add({ definition, plan }, registered.locks.store));
    advise(plan, ...adviceOnOptions(where, options, plan.parts, plan.options.renew));
    return plan;
  }
}
