import { inspect } from 'node:util';
import { configError, LockError, LockTimeoutError, nameCaller } from '../../core/model/errors.js';
import type { LockLog } from '../../core/model/lock-log.js';
import { completeOptions, resolveOptions, type ResolvedOptions } from '../../core/model/options.js';
import type { HeldLease } from '../../core/holding/held-lease.js';
import type { Locks } from '../../locks.js';
import { takeable } from '../../primitives/key-lock.js';
import type { Guard } from '../../primitives/lock.js';
import type { LockDefinition } from '../decorators/lock-definition.js';
import {
  lockOptionsOf,
  type DistributedLockModuleOptions,
  type DistributedLockOptions,
  type ReturnKind,
} from '../distributed-lock.options.js';
import { digestArguments, encodeKeyParts } from '../key/lock-key.js';

/** A store of an app. */
export interface Registered {
  readonly locks: Locks;
  readonly log: LockLog;
  readonly options: DistributedLockModuleOptions;
}

/** The lock of a call, of any kind. The method runs while the call holds a lease of it. */
export type MethodLock = Guard<HeldLease>;

/** How one decorated method locks in this app: its own options, completed by the app's defaults. */
export interface LockPlan {
  readonly options: ResolvedOptions;
  readonly returns: ReturnKind;
  /** `prefix + value`, after the namespace. */
  readonly name: string;
  /** The key without the part that depends on the arguments. */
  readonly key: string;
  /** How the arguments are part of the key: not at all, by a `key` function, or by a digest of all of them or of the values at some paths. */
  readonly parts: Parts;
  /** The key of a call with these arguments, after the namespace. */
  keyOf(args: readonly unknown[]): string;
  /** The lock of a call with these arguments. */
  lockOf(args: readonly unknown[]): MethodLock;
  readonly log: LockLog;
}

/**
 * @throws {LockConfigError} if the method's options and the defaults do not make a lock together.
 * @throws {UnsupportedPrimitiveError} if the store has no such locks.
 */
export function planLock(definition: LockDefinition, registered: Registered): LockPlan {
  const { where, className, method, returns, options: own } = definition;
  const { log, options: ofModule } = registered;
  const { namespace = '', defaults = {} } = ofModule;
  const name = typeof method === 'symbol' ? (method.description ?? '') : method;
  const path = `${className}.${name}`;
  const { prefix = defaults.prefix ?? '', value = defaults.value ?? path } = own;
  if (name === '' && value === path) throw configError('KEY', `${where}: a symbol without a description makes no key: give a "value".`);
  if (prefix + value === '') throw configError('KEY', `${where}: the key is empty: give a "prefix" or a "value".`);
  // `key` and `paramLock` exclude each other, so a method that sets one of them ignores the defaults of both.
  const parts = own.key ?? own.paramLock ?? defaults.key ?? defaults.paramLock;
  const lockAt = lockMaker(definition, registered, path);
  const keyOf = (args: readonly unknown[]): string => `${prefix}${value}${parts ? partOf(parts, args) : ''}-locks`;
  // Also where the arguments are part of the key: this checks the rest of it.
  const lock = naming(where, () => lockAt(`${prefix}${value}-locks`));
  const options = naming(where, () => resolveOptions(completeDefaults(registered), own));
  return {
    options: { ...options, label: options.label ?? path },
    returns: returns ?? defaults.returns ?? 'promise',
    log,
    name: namespace + prefix + value,
    key: `${namespace}${prefix}${value}${parts ? '-…' : ''}-locks`,
    parts,
    keyOf: (args) => naming(where, () => namespace + keyOf(args)),
    lockOf: (args) => (parts ? naming(where, () => lockAt(keyOf(args))) : lock),
  };
}

/** The defaults of the module, completed by those of the library. */
export function completeDefaults({ options }: Registered): ResolvedOptions {
  return completeOptions(lockOptionsOf(options.defaults ?? {}));
}

function lockMaker({ kind, options }: LockDefinition, { locks, log }: Registered, path: string): (key: string) => MethodLock {
  const { policy, permits = 1, count, label = path } = options;
  if (kind === 'read' || kind === 'write') return (key) => takeable(locks.readWriteLock(key, { policy })[kind]);
  if (kind === 'semaphore') return (key) => takeable(locks.semaphore(key, { permits, count }));
  if (kind === 'cron') return (key) => cronLock(takeable(locks.mutex(key)), label, (message) => log.write('debug', message, { label }));
  return (key) => takeable(locks.mutex(key));
}

/** The lock of a {@link CronLock}: it also logs which instance runs a tick, and which skip it. */
function cronLock(lock: MethodLock, label: string, debug: (message: string) => void): MethodLock {
  return {
    async take(options, guardsBody) {
      try {
        return await lock.take(options, guardsBody);
      } catch (error) {
        if (error instanceof LockTimeoutError) debug(`${label} is skipped: ${error.holder ?? 'another instance'} has it.`);
        throw error;
      }
    },
    holding(lease, work) {
      debug(`${label} runs here.`);
      return lock.holding(lease, work);
    },
  };
}

type Parts = DistributedLockOptions['key'] | DistributedLockOptions['paramLock'];

function partOf(parts: Exclude<Parts, undefined | false>, args: readonly unknown[]): string {
  return `-${typeof parts === 'function' ? encodeKeyParts(partsBy(parts, args)) : digestArguments(args, parts)}`;
}

function partsBy(key: (...args: unknown[]) => unknown, args: readonly unknown[]): unknown {
  try {
    return key(...args);
  } catch (cause) {
    throw configError('KEY', `key threw ${cause instanceof Error ? `${cause.name}: ${cause.message}` : inspect(cause)}`, { cause });
  }
}

/** Adds the name of the method to the messages of errors. */
export function naming<T>(where: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof LockError) nameCaller(error, where);
    throw error;
  }
}
