import { type BeforeApplicationShutdown, Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { LockConfigError } from '../core/errors.js';
import { checkKey } from '../core/key.js';
import { completeOptions, defined, resolveOptions, USING_OPTIONS, type ResolvedOptions, type UsingOptions } from '../core/options.js';
import { log, type LockLogger } from '../core/events.js';
import { Locks } from '../locks.js';
import type { Mutex } from '../primitives/mutex.js';
import {
  checkModuleOptions,
  type DistributedLockModuleOptions,
  type DistributedLockOptions,
  type ReturnKind,
} from './distributed-lock.options.js';
import { DEFAULT_NAME } from './distributed-lock.tokens.js';
import type { LockDefinition } from './lock-definition.js';
import { digestArguments, encodeKeyParts } from './lock-key.js';

/** How one decorated method locks in this app: its own options over the app's defaults. */
export interface LockPlan {
  readonly options: ResolvedOptions;
  readonly returns: ReturnKind;
  /** The lock of this call. */
  mutexOf(args: readonly unknown[]): Mutex;
  /** Where the app's operator reads it. */
  log(level: 'warn' | 'debug', message: string): void;
}

interface Registered {
  readonly locks: Locks;
  readonly logger: LockLogger | false;
  readonly defaults: DistributedLockOptions;
  /** The defaults, completed by ours: once, for all methods. */
  readonly complete: ResolvedOptions;
  readonly namespace: string;
}

const SLOT = Symbol.for('nestjs-distributed-lock:stores');
const shared = globalThis as { [SLOT]?: WeakMap<object, Map<string, Registered>> };
/** On globalThis, for a feature library with a copy of this package may register its own store in the same app. */
const storesOf = (shared[SLOT] ??= new WeakMap<object, Map<string, Registered>>());

/** The stores of one app, by name. */
@Injectable()
export class LockRegistry implements BeforeApplicationShutdown, OnApplicationShutdown {
  private readonly stores: Map<string, Registered>;
  private readonly plans = new WeakMap<LockDefinition, LockPlan>();

  constructor(@Inject(ModulesContainer) app: ModulesContainer) {
    this.stores = storesOf.get(app) ?? new Map<string, Registered>();
    storesOf.set(app, this.stores);
  }

  register(name: string, options: DistributedLockModuleOptions): Locks {
    checkModuleOptions(options);
    if ((options.name ?? name) !== name) {
      throw new LockConfigError(
        `DistributedLockModule: the name "${options.name}" must be given to forRootAsync() itself, beside the factory.`,
      );
    }
    if (this.stores.has(name)) throw new LockConfigError(`DistributedLockModule: two stores are registered under the name "${name}".`);
    const { store, namespace = '', defaults = {}, shutdownTimeout, localQueue, logger = new Logger('DistributedLock') } = options;
    const locks = new Locks(store, { namespace, defaults: usingOptionsOf(defaults), shutdownTimeout, localQueue, logger });
    const complete = completeOptions(usingOptionsOf(defaults));
    this.stores.set(name, { locks, logger, defaults: defined(defaults), complete, namespace });
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

  /** To the logger of the first store. */
  log(level: 'warn' | 'debug', message: string): void {
    const [first] = this.stores.values();
    log(first?.logger ?? false, level, message);
  }

  beforeApplicationShutdown(): void {
    for (const { locks } of this.stores.values()) locks.stopWaiting();
  }

  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.stores.values()].map(({ locks }) => locks.close()));
  }

  private plan(definition: LockDefinition): LockPlan {
    const { where, className, method } = definition;
    const own = defined(definition.options);
    const name = own.store ?? this.stores.get(DEFAULT_NAME)?.defaults.store ?? DEFAULT_NAME;
    const registered = this.stores.get(name);
    if (!registered) throw new LockConfigError(`${where}: no store is registered under the name "${name}".`);
    const { locks, logger, defaults, complete, namespace } = registered;
    // Which arguments take part is said by `key` or by `paramLock`: whoever gives one of them has said it.
    const parts = own.key ?? own.paramLock ?? defaults.key ?? defaults.paramLock;
    const { prefix = '', value = `${className}.${typeof method === 'symbol' ? (method.description ?? '') : method}` } = {
      ...defaults,
      ...own,
    };
    if (prefix + value === '') throw new LockConfigError(`${where}: the key is empty: give a "prefix" or a "value".`);
    naming(where, () => checkKey(namespace + prefix + value + '-locks'));
    return {
      options: resolveOptions(complete, usingOptionsOf(own)),
      returns: definition.returns ?? defaults.returns ?? 'promise',
      mutexOf: (args) => naming(where, () => locks.mutex(prefix + value + partOf(parts, args) + '-locks')),
      log: (level, message) => log(logger, level, message),
    };
  }
}

function partOf(parts: DistributedLockOptions['key'] | DistributedLockOptions['paramLock'], args: readonly unknown[]): string {
  if (parts === undefined || parts === false) return '';
  if (typeof parts === 'function') return `-${encodeKeyParts(parts(...args))}`;
  return `-${digestArguments(args, parts)}`;
}

function usingOptionsOf(options: DistributedLockOptions): UsingOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => (USING_OPTIONS as readonly string[]).includes(name)));
}

/** Says in a {@link LockConfigError} which method it is about. */
function naming<T>(where: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    if (!(cause instanceof LockConfigError)) throw cause;
    throw new LockConfigError(`${where}: ${cause.message}`, { key: cause.key, cause });
  }
}
