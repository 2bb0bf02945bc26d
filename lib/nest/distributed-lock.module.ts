import { type DynamicModule, Global, Module, type Provider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
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
    return moduleOf(options.name ?? DEFAULT_NAME, [{ provide: optionsToken(options.name), useValue: options }]);
  }

  /** As {@link forRoot}, with options from a factory, a class or an existing provider. */
  static forRootAsync(options: DistributedLockModuleAsyncOptions): DynamicModule {
    checkAsyncOptions(options);
    const { name, imports = [] } = options;
    return { ...moduleOf(name ?? DEFAULT_NAME, asyncProviders(options)), imports: [...imports, DistributedLockCoreModule] };
  }
}

function moduleOf(name: string, providers: Provider[]): DynamicModule {
  const token = locksToken(name);
  const isDefault = name === DEFAULT_NAME;
  const locks: Provider = {
    provide: token,
    useFactory: (registry: LockRegistry, options: DistributedLockModuleOptions) => registry.register(name, options),
    inject: [LockRegistry, optionsToken(name)],
  };
  return {
    module: DistributedLockModule,
    global: true,
    imports: [DistributedLockCoreModule],
    providers: [...providers, locks, ...(isDefault ? [{ provide: Locks, useExisting: token }] : [])],
    exports: [token, ...(isDefault ? [Locks] : [])],
  };
}

function asyncProviders(options: DistributedLockModuleAsyncOptions): Provider[] {
  const { name, useFactory, useClass, useExisting } = options;
  const provide = optionsToken(name);
  if (useFactory) return [{ provide, useFactory, inject: (options.inject ?? []) as never[] }];
  const factory = (useClass ?? useExisting) as NonNullable<typeof useClass>;
  const fromFactory: Provider = {
    provide,
    useFactory: (made: DistributedLockOptionsFactory) => made.createDistributedLockOptions(),
    inject: [factory],
  };
  return useClass ? [{ provide: useClass, useClass }, fromFactory] : [fromFactory];
}

function optionsToken(name = DEFAULT_NAME): symbol {
  return Symbol.for(`nestjs-distributed-lock:options:${name}`);
}
