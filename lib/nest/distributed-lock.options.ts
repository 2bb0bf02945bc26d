import type { ModuleMetadata, Type } from '@nestjs/common';
import { LockConfigError } from '../core/model/errors.js';
import type { LockLogger } from '../core/model/events.js';
import type { LocalQueueOptions } from '../core/waiting/lock-queues.js';
import { checkOptions, USING_OPTIONS, type UsingOptions } from '../core/model/options.js';
import type { LockStore } from '../core/store/lock-store.js';
import { checkReadWriteOptions, type ReadWriteLockOptions } from '../primitives/read-write-lock.js';
import { checkSemaphoreOptions, type SemaphoreOptions } from '../primitives/semaphore.js';
import { checkParamLockPaths } from './key/lock-key.js';
import type { KeyOf, LockableMethod, PathOf } from './decorators/lockable-method.js';

export type ReturnKind = 'promise' | 'observable' | 'iterable';

/** Options of {@link DistributedLock}. All times are whole milliseconds. */
export interface DistributedLockOptions<
  M extends LockableMethod = LockableMethod,
  Key = KeyOf<M>,
  Path extends string = PathOf<M>,
> extends Omit<UsingOptions, 'signal'> {
  /** Default `''`. The key is `prefix + value + part + '-locks'`. */
  prefix?: string;
  /** Default `'<DeclaringClass>.<method>'`. */
  value?: string;
  /**
   * `true`: the key contains a digest of all arguments. Paths such as `['0.id', '1']`: a digest of these values only. Default false.
   *
   * A call whose arguments have no stable form (a function, a stream, a cycle…) rejects with {@link LockConfigError}.
   */
  paramLock?: boolean | readonly Path[];
  /** Builds the part of the key that depends on the arguments. Not together with `paramLock`. */
  key?: Key;
  /** What the method returns. Needed if the method is not `async` and has no declared type that says it; wins over the declared type. */
  returns?: ReturnKind;
  /** Name of the registered store. Default `'default'`. */
  store?: string;
}

/** Options of {@link ReadLock} and {@link WriteLock}. */
export interface ReadWriteDecoratorOptions<M extends LockableMethod = LockableMethod, Key = KeyOf<M>, Path extends string = PathOf<M>>
  extends DistributedLockOptions<M, Key, Path>, ReadWriteLockOptions {}

/** Options of {@link Semaphore}. */
export interface SemaphoreDecoratorOptions<M extends LockableMethod = LockableMethod, Key = KeyOf<M>, Path extends string = PathOf<M>>
  extends DistributedLockOptions<M, Key, Path>, SemaphoreOptions {}

/** Options of {@link LeaderOnly}. Methods of the same election that set `keyTimeout` or `retryInterval` must set the same value. */
export type LeaderOnlyOptions = Pick<DistributedLockOptions, 'keyTimeout' | 'retryInterval' | 'onLost' | 'returns' | 'store'>;

/** The options of all decorators together. */
export interface AnyDecoratorOptions extends ReadWriteDecoratorOptions, Partial<SemaphoreOptions> {}

export interface DistributedLockModuleOptions {
  store: LockStore;
  /** The name by which the option `store` of a decorator refers to this store. Default `'default'`. */
  name?: string;
  /** Put before every key. Default: nothing. */
  namespace?: string;
  /** Any decorator option, for all methods that do not set it themselves. */
  defaults?: DistributedLockOptions;
  /** How long a closing app waits for running methods, in milliseconds. Default 10,000. */
  shutdownTimeout?: number;
  /** How long this process may hand a lock to its own callers while another process waits. Default: 32 hand-overs or 50 ms. */
  localQueue?: LocalQueueOptions;
  /** Default: Nest's logger; `false`: none. */
  logger?: LockLogger | false;
}

export interface DistributedLockOptionsFactory {
  createDistributedLockOptions(): DistributedLockModuleOptions | Promise<DistributedLockModuleOptions>;
}

/** One of `useFactory`, `useClass` and `useExisting`. */
export interface DistributedLockModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** As in {@link DistributedLockModuleOptions}. It stands here because it must be known before the factory runs. */
  name?: string;
  inject?: unknown[];
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the types of what `inject` names
  useFactory?: (...args: any[]) => DistributedLockModuleOptions | Promise<DistributedLockModuleOptions>;
  useClass?: Type<DistributedLockOptionsFactory>;
  useExisting?: Type<DistributedLockOptionsFactory>;
}

const RETURN_KINDS: readonly unknown[] = ['promise', 'observable', 'iterable'];
const ASPECT_OPTIONS = ['prefix', 'value', 'paramLock', 'key', 'returns', 'store'];
const CORE_OPTIONS = USING_OPTIONS.filter((name) => name !== 'signal');
const LOCK_OPTIONS = [...CORE_OPTIONS, ...ASPECT_OPTIONS];
const OPTIONS = {
  mutex: LOCK_OPTIONS,
  read: [...LOCK_OPTIONS, 'policy'],
  write: [...LOCK_OPTIONS, 'policy'],
  semaphore: [...LOCK_OPTIONS, 'permits', 'count'],
  leader: ['keyTimeout', 'retryInterval', 'onLost', 'returns', 'store'],
};

/** Each has a decorator. */
export type LockKind = keyof typeof OPTIONS;

/** The options of a decorator that the lock itself takes. */
export function coreOptionsOf(options: DistributedLockOptions): UsingOptions {
  return Object.fromEntries(CORE_OPTIONS.map((name) => [name, options[name]]));
}

/** @throws {LockConfigError} naming `where` and the option. */
export function checkDecoratorOptions(options: AnyDecoratorOptions, where: string, kind: LockKind): void {
  checkOptions(options, where, OPTIONS[kind]);
  const fail = (problem: string): never => {
    throw new LockConfigError(`${where}: ${problem}.`);
  };
  for (const name of ['prefix', 'value', 'store'] as const) {
    const text: unknown = options[name];
    if (text !== undefined && typeof text !== 'string') fail(`"${name}" must be a string, not ${typeof text}`);
  }
  const { paramLock, key, returns, policy } = options;
  if (key !== undefined && typeof key !== 'function') fail('"key" must be a function of the arguments');
  if (key !== undefined && paramLock) fail('"key" and "paramLock" both say which arguments take part in the key: give one');
  if (paramLock !== undefined && typeof paramLock !== 'boolean') {
    try {
      checkParamLockPaths(paramLock);
    } catch (error) {
      fail(`"paramLock" is wrong: ${(error as Error).message.replace(/\.$/, '')}`);
    }
  }
  if (returns !== undefined && !RETURN_KINDS.includes(returns)) fail('"returns" must be "promise", "observable" or "iterable"');
  if (kind === 'semaphore') checkSemaphoreOptions({ permits: options.permits as number, count: options.count }, where);
  else if (policy !== undefined) checkReadWriteOptions({ policy }, where);
}

const ASYNC_OPTIONS = ['name', 'imports', 'inject', 'useFactory', 'useClass', 'useExisting'];
const MODULE_OPTIONS = ['store', 'name', 'namespace', 'defaults', 'shutdownTimeout', 'logger', 'localQueue'];

/** @throws {LockConfigError} naming the option; {@link Locks} checks the rest. */
export function checkModuleOptions(options: DistributedLockModuleOptions): void {
  checkNames(options, MODULE_OPTIONS, 'forRoot');
  if (options.defaults !== undefined) checkDecoratorOptions(options.defaults, 'DistributedLockModule: "defaults"', 'mutex');
}

/** @throws {LockConfigError} naming the option. */
export function checkAsyncOptions(options: DistributedLockModuleAsyncOptions): void {
  checkNames(options, ASYNC_OPTIONS, 'forRootAsync');
  const ways = [options.useFactory, options.useClass, options.useExisting].filter((way) => way !== undefined);
  if (ways.length !== 1 || typeof ways[0] !== 'function') {
    throw new LockConfigError('DistributedLockModule.forRootAsync: give exactly one of useFactory, useClass and useExisting.');
  }
}

function checkNames(options: { name?: string }, known: readonly string[], method: string): void {
  const where = `DistributedLockModule.${method}`;
  checkOptions(options ?? null, where, known);
  if (options.name !== undefined && (typeof options.name !== 'string' || options.name === '')) {
    throw new LockConfigError(`${where}: "name" must be a string that is not empty.`);
  }
}
