import type { ModuleMetadata, Type } from '@nestjs/common';
import { configError } from '../core/model/errors.js';
import type { LockLogger } from '../core/model/lock-log.js';
import { checkOneOf, checkOptions, integerFrom, ofType, oneOf, only, type Check, type Checks } from '../core/model/check-options.js';
import { LOCKS_CHECKS, type LocksOptions } from '../core/model/locks-options.js';
import { checkHolds, USING_CHECKS, type OnTimeout, type UsingOptions } from '../core/model/options.js';
import type { LockStore } from '../core/store/lock-store.js';
import {
  checkSemaphoreOptions,
  READ_WRITE_CHECKS,
  SEMAPHORE_CHECKS,
  type ReadWriteLockOptions,
  type SemaphoreOptions,
} from '../primitives/kinds.js';
import { checkPaths } from './key/lock-key.js';
import type { KeyOf, LockableMethod, PathOf } from './decorators/lockable-method.js';

/** The kind of result of a locked method. */
export type ReturnKind = 'promise' | 'observable' | 'iterable';

/** Options of {@link DistributedLock}. All times are whole milliseconds. */
export interface DistributedLockOptions<
  M extends LockableMethod = LockableMethod,
  Key = KeyOf<M>,
  Path extends string = PathOf<M>,
  On extends OnTimeout = OnTimeout,
> extends Omit<UsingOptions, 'signal' | 'onTimeout'> {
  /** The beginning of the key, which is `prefix + value + part + '-locks'`. Default `''`. */
  prefix?: string;
  /**
   * The name of the lock in its key, which is `prefix + value + part + '-locks'`. Methods of one `prefix` and `value` exclude each other, as far as the
   * part, which `key` or `paramLock` makes, is the same. Default `'<DeclaringClass>.<method>'`.
   */
  value?: string;
  /**
   * Whether the key contains a digest of the arguments. `true`: of all; paths such as `['0.id', '1']`: of the values at these paths. Default false.
   *
   * A call whose arguments have no stable form (a function, a stream, a cycle…), or more than 100,000 fields, rejects with {@link LockConfigError}.
   */
  paramLock?: boolean | readonly Path[];
  /**
   * Builds the part of the key that depends on the arguments: a string, a number, a bigint or a list of them. Not together with `paramLock`. The types of its parameters are those of the method that
   * the decorator is given, `@DistributedLock<OrderService['ship']>({ key: (order) => order.id })`, or those that it declares: `(order: Order) => order.id`.
   * Otherwise they are `unknown`.
   */
  key?: Key;
  /**
   * Decides what happens when the wait timeout is over: `'throw'` a {@link LockTimeoutError}; `'skip'` the call, which resolves to `undefined` (an Observable completes,
   * an iterable ends); or resolve to what a function returns. Default `'throw'`.
   */
  onTimeout?: On;
  /** The kind of result. Needed if the method is not `async` and has no declared type that says it; wins over the declared type. */
  returns?: ReturnKind;
  /** The name of the registered store. Default `'default'`. */
  store?: string;
}

/** Options of {@link CronLock}. */
export interface CronLockOptions<M extends LockableMethod = LockableMethod, Key = KeyOf<M>, Path extends string = PathOf<M>> extends Omit<
  DistributedLockOptions<M, Key, Path>,
  'waitTimeout' | 'retryCount' | 'retryInterval' | 'onTimeout' | 'minHold'
> {
  /**
   * Milliseconds after its start in which no other instance runs the same tick. It must be longer than the difference between the clocks of the
   * instances, and shorter than the time between two ticks.
   */
  minHold: number;
}

/** Options of {@link ReadLock} and {@link WriteLock}. */
export interface ReadWriteDecoratorOptions<
  M extends LockableMethod = LockableMethod,
  Key = KeyOf<M>,
  Path extends string = PathOf<M>,
  On extends OnTimeout = OnTimeout,
>
  extends DistributedLockOptions<M, Key, Path, On>, ReadWriteLockOptions {}

/** Options of {@link Semaphore}. */
export interface SemaphoreDecoratorOptions<
  M extends LockableMethod = LockableMethod,
  Key = KeyOf<M>,
  Path extends string = PathOf<M>,
  On extends OnTimeout = OnTimeout,
  Permits extends number = number,
>
  extends DistributedLockOptions<M, Key, Path, On>, SemaphoreOptions<Permits> {}

/** Options of {@link LeaderOnly}. Methods of the same election that set `keyTimeout` or `retryInterval` must set the same value. */
export type LeaderOnlyOptions = Pick<DistributedLockOptions, 'keyTimeout' | 'retryInterval' | 'onLost' | 'returns' | 'store'>;

/** The options of all decorators together. */
export interface AnyDecoratorOptions extends ReadWriteDecoratorOptions, Partial<SemaphoreOptions> {}

/** Options of {@link DistributedLockModule.forRoot}: those of {@link Locks}, and what only an app has. */
export interface DistributedLockModuleOptions extends Omit<LocksOptions, 'defaults' | 'logger'> {
  /** Where the locks live: `redisStore({ url })`, `postgresStore({ url })`, … */
  store: LockStore;
  /** The name by which the option `store` of a decorator refers to this store. Default `'default'`. */
  name?: string;
  /** Any decorator option, for all methods that do not set it themselves. */
  defaults?: DistributedLockOptions;
  /**
   * Whether the app does not start when the store does not answer within its `requestTimeout`, or refuses. Default false: the app starts, the log says
   * so, and locks wait.
   */
  failFast?: boolean;
  /** Receives warnings: lost leases, long waits, a store that is away, likely mistakes. `false`: none. Default: Nest's logger. */
  logger?: LockLogger | false;
}

/** A provider that makes the options for {@link DistributedLockModule.forRootAsync}. */
export interface DistributedLockOptionsFactory {
  /** Called once, when the module is created. */
  createDistributedLockOptions(): DistributedLockModuleOptions | Promise<DistributedLockModuleOptions>;
}

/** One of `useFactory`, `useClass` and `useExisting`. */
export interface DistributedLockModuleAsyncOptions extends Pick<ModuleMetadata, 'imports'> {
  /** The name, as in {@link DistributedLockModuleOptions}. It is here because it must be known before the factory runs. */
  name?: string;
  inject?: unknown[];
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the types of what `inject` names
  useFactory?: (...args: any[]) => DistributedLockModuleOptions | Promise<DistributedLockModuleOptions>;
  useClass?: Type<DistributedLockOptionsFactory>;
  useExisting?: Type<DistributedLockOptionsFactory>;
}

const { signal: _signal, ...CORE_CHECKS } = USING_CHECKS;
const RETURNS = oneOf('promise', 'observable', 'iterable');
const STRING = ofType('string');
const LOCK_CHECKS = {
  ...CORE_CHECKS,
  prefix: STRING,
  value: STRING,
  store: STRING,
  paramLock: (value: unknown) => (typeof value === 'boolean' ? undefined : checkPaths(value)),
  key: ofType('function'),
  returns: RETURNS,
};
const { waitTimeout: _wait, retryCount: _count, retryInterval: _interval, onTimeout: _on, ...CRON_CHECKS } = LOCK_CHECKS;
const CHECKS = {
  mutex: LOCK_CHECKS,
  cron: { ...CRON_CHECKS, minHold: integerFrom(1) },
  read: { ...LOCK_CHECKS, ...READ_WRITE_CHECKS },
  write: { ...LOCK_CHECKS, ...READ_WRITE_CHECKS },
  semaphore: { ...LOCK_CHECKS, ...SEMAPHORE_CHECKS },
  leader: { ...only(USING_CHECKS, 'keyTimeout', 'retryInterval', 'onLost'), returns: RETURNS, store: STRING },
};

/** Each has a decorator. */
export type LockKind = keyof typeof CHECKS;

/** The options of a decorator that the lock itself takes. */
export function lockOptionsOf(options: DistributedLockOptions): UsingOptions {
  return picked(options, CORE_CHECKS);
}

/** The options of the module that its {@link Locks} take. */
export function locksOptionsOf(options: DistributedLockModuleOptions): LocksOptions {
  return { ...picked(options, LOCKS_CHECKS), defaults: options.defaults && lockOptionsOf(options.defaults) };
}

/** The options that have a check. They may be inherited. */
function picked(options: object, checks: Checks): Record<string, unknown> {
  return Object.fromEntries(Object.keys(checks).map((name) => [name, options[name as keyof typeof options]]));
}

const REQUIRED: Partial<Record<LockKind, string>> = { cron: 'minHold', semaphore: 'permits' };

/**
 * @param example the decorator with what it needs.
 * @throws {LockConfigError} naming `where` and the option.
 */
export function checkDecoratorOptions(options: AnyDecoratorOptions, where: string, kind: LockKind, example?: string): void {
  checkOptions(options, where, CHECKS[kind], REQUIRED[kind], example);
  const { key, paramLock, permits, count } = options;
  if (key !== undefined && paramLock) {
    throw configError('OPTION', `${where}: "key" and "paramLock" both say which arguments take part in the key: give one.`);
  }
  checkHolds(options, `${where}: `);
  if (kind === 'semaphore') checkSemaphoreOptions({ permits: permits as number, count }, where);
}

const NAME: Check = (value) => (typeof value === 'string' && value !== '' ? undefined : 'a string that is not empty');
/** The check of an option that is checked elsewhere. */
const ANY: Check = () => undefined;
const WAY = ofType('function');
const ASYNC_CHECKS = { name: NAME, imports: ANY, inject: ANY, useFactory: WAY, useClass: WAY, useExisting: WAY };
const MODULE_CHECKS = { ...LOCKS_CHECKS, name: NAME, store: ANY, failFast: oneOf(true, false) };
const OF_A_STORE = ['url', 'client', 'cluster', 'sentinels'];
const OF_A_CLIENT = ['redis', 'redisOptions', 'host', 'port', 'connection'];

/**
 * @param isMade by a factory.
 * @throws {LockConfigError} naming the option, or what was meant; {@link Locks} checks the rest.
 */
export function checkModuleOptions(options: DistributedLockModuleOptions, isMade = false): void {
  const where = `DistributedLockModule.forRoot${isMade ? 'Async' : ''}`;
  if (isMade && !options) throw configError('OPTION', `${where}: the factory must return the options: { store: … }.`);
  if ('mutex' in Object(options)) throw configError('OPTION', `${where}: a store is passed as { store: … }.`);
  const source = [...OF_A_STORE, ...OF_A_CLIENT].find((name) => name in Object(options));
  const taken = source && OF_A_STORE.includes(source) ? `{ ${source} }` : '{ url } | { client } | { options: { host, port } }';
  if (source) throw configError('OPTION', `${where}: "${source}" is an option of a store: { store: redisStore(${taken}) }.`);
  if ('isGlobal' in Object(options)) throw configError('OPTION', `${where}: leave "isGlobal" out: the module is always global.`);
  const ofCalls = Object.keys(options ?? {}).find((name) => Object.hasOwn(LOCK_CHECKS, name) && !Object.hasOwn(MODULE_CHECKS, name));
  if (ofCalls) throw configError('OPTION', `${where}: "${ofCalls}" is a default of locks: write { defaults: { ${ofCalls} } }.`);
  checkOptions(options ?? null, where, MODULE_CHECKS);
  if (options.defaults !== undefined) checkDecoratorOptions(options.defaults, 'DistributedLockModule: "defaults"', 'mutex');
}

/** @throws {LockConfigError} naming the option. */
export function checkAsyncOptions(options: DistributedLockModuleAsyncOptions): void {
  const where = 'DistributedLockModule.forRootAsync';
  checkOptions(options ?? null, where, ASYNC_CHECKS);
  checkOneOf(options, where, ['useFactory', 'useClass', 'useExisting']);
}
