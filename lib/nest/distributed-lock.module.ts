import {
  type DynamicModule,
  type FactoryProvider,
  Global,
  Inject,
  Module,
  type ModuleMetadata,
  type Provider,
  type ValueProvider,
} from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { configError } from '../core/model/errors.js';
import { Locks } from '../locks.js';
import { LockExplorer } from './boot/distributed-lock.explorer.js';
import { DistributedLockInterceptor } from './aspect/distributed-lock.interceptor.js';
import {
  checkAsyncOptions,
  checkModuleOptions,
  type DistributedLockModuleAsyncOptions,
  type DistributedLockModuleOptions,
  type DistributedLockOptionsFactory,
} from './distributed-lock.options.js';
import { DEFAULT_NAME, INTERCEPTOR, locksToken } from './distributed-lock.tokens.js';
import { LockRegistry } from './lock-registry.js';

/** The providers that an app has once, no matter how many stores it registers. */
@Global()
@Module({
  imports: [DiscoveryModule],
  providers: [LockRegistry, LockExplorer, DistributedLockInterceptor, { provide: INTERCEPTOR, useExisting: DistributedLockInterceptor }],
  exports: [LockRegistry, DistributedLockInterceptor, INTERCEPTOR],
})
class DistributedLockCoreModule {}

/** Import it once for each store, in the root module. {@link DistributedLock} then works in every module of the app. */
@Module({})
export class DistributedLockModule {
  /**
   * `DistributedLockModule.forRoot({ store: redisStore({ url }) })`
   *
   * @throws {LockConfigError} if an option is wrong.
   */
  static forRoot(options: DistributedLockModuleOptions): DynamicModule {
    checkModuleOptions(options);
    return moduleOf(options.name, { useValue: options });
  }

  /**
   * There is none: one import of {@link forRoot} serves all modules.
   *
   * @throws {LockConfigError} always. It does not compile.
   */
  static forFeature(this: 'forRoot() is global: import it once, in the root module', ..._options: unknown[]): never {
    throw configError(
      'MODULE',
      'DistributedLockModule.forFeature does not exist. forRoot({ store }) is global: import it once, in the root module, and decorate methods in any.',
    );
  }

  /** Registers a store whose options come from a factory, a class or an existing provider. @throws {LockConfigError} as {@link forRoot}. */
  static forRootAsync(options: DistributedLockModuleAsyncOptions): DynamicModule {
    checkAsyncOptions(options);
    const { name, imports, inject = [], useFactory, useClass, useExisting } = options;
    if (useFactory) return moduleOf(name, { useFactory, inject }, { imports });
    const create = (factory: DistributedLockOptionsFactory) => factory.createDistributedLockOptions();
    return moduleOf(name, { useFactory: create, inject: [useClass ?? useExisting] }, { imports, providers: useClass ? [useClass] : [] });
  }
}

/** Injects the {@link Locks} of a named store. Without a name those of the default store, for which the class `Locks` is a token, too. */
export function InjectLocks(name?: string): PropertyDecorator & ParameterDecorator {
  return Inject(locksToken(name));
}

function moduleOf(
  name = DEFAULT_NAME,
  options: Pick<ValueProvider, 'useValue'> | { useFactory: FactoryProvider['useFactory']; inject: unknown[] },
  { imports = [], providers = [] }: ModuleMetadata = {},
): DynamicModule {
  const token = locksToken(name);
  const optionsToken = Symbol.for(`nestjs-distributed-lock:options:${name}`);
  const locks = {
    provide: token,
    useFactory: (registry: LockRegistry, made: DistributedLockModuleOptions) => registry.register(name, made),
    inject: [LockRegistry, optionsToken],
  };
  const ofDefault = name === DEFAULT_NAME ? [{ provide: Locks, useExisting: token }] : [];
  return {
    module: DistributedLockModule,
    global: true,
    imports: [...imports, DistributedLockCoreModule],
    providers: [...providers, { provide: optionsToken, ...options } as Provider, locks, ...ofDefault],
    exports: [token, ...ofDefault.map(({ provide }) => provide)],
  };
}
