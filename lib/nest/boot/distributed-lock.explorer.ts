import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { DistributedLockInterceptor } from '../aspect/distributed-lock.interceptor.js';
import { DECORATORS, type LockDefinition, type LockedMethod, lockedMethodsOf } from '../decorators/lock-definition.js';
import { INTERCEPTOR_PROPERTY } from '../distributed-lock.tokens.js';
import { LockRegistry } from '../lock-registry.js';
import { advise, adviceOnParameters, adviceOnSchedule, ownFunction, type Use } from './advice.js';
import { adopt, type AppLink, beginGrowth } from './late-instances.js';

type LockedMethods = ReadonlyMap<string | symbol, LockedMethod>;
type Provider = ReturnType<DiscoveryService['getProviders']>[number];

const NONE: LockedMethods = new Map();

/** Checks every decorated method at boot, and adopts instances from factories and values, into which Nest injects nothing. */
@Injectable()
export class LockExplorer implements OnModuleInit, OnApplicationShutdown {
  /** The locked methods by prototype, those of its parents included. */
  private readonly checked = new WeakMap<object, LockedMethods>();
  private readonly wrapped = new WeakSet<Provider>();
  /** The boot, and modules that are being loaded lazily. */
  private growths = 0;
  private readonly link: AppLink;
  // Begins here and not in onModuleInit: hooks of earlier modules, and tests that run no hooks, may call an instance of a factory before that.
  private readonly endBoot = this.grow();

  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(LockRegistry) private readonly registry: LockRegistry,
    @Inject(DistributedLockInterceptor) interceptor: DistributedLockInterceptor,
    @Inject(LazyModuleLoader) private readonly loader: LazyModuleLoader,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
  ) {
    this.link = { interceptor, isOpen: true };
  }

  async onModuleInit(): Promise<void> {
    this.endBoot();
    try {
      this.explore();
    } catch (error) {
      // Nest does not close an app that fails to start.
      await this.onApplicationShutdown();
      throw error;
    }
    const load = this.loader.load.bind(this.loader);
    this.loader.load = async (...args) => {
      const module = await load(...args).finally(this.grow());
      this.explore();
      return module;
    };
  }

  async onApplicationShutdown(): Promise<void> {
    this.endBoot();
    this.link.isOpen = false;
    try {
      // A method that is still running may call other locked methods of its instance.
      await this.registry.onApplicationShutdown();
    } finally {
      this.link.interceptor = undefined;
    }
  }

  explore(): void {
    // Guards, pipes, interceptors and filters that are bound by their class.
    const enhancers = [...this.modules.values()].flatMap(({ injectables }) => [...injectables.values()]);
    for (const provider of [...this.discovery.getProviders(), ...this.discovery.getControllers(), ...enhancers]) {
      const instance: unknown = provider.instance;
      if (isObject(instance)) this.adopt(instance);
      else this.locksOf((provider.metatype as { prototype?: unknown } | null)?.prototype);
      if (provider.inject && (provider.scope || this.dependsOnRequest(provider))) this.wrap(provider);
    }
  }

  private grow(): () => void {
    const end = beginGrowth(this);
    this.growths++;
    return () => {
      this.growths--;
      end();
    };
  }

  /** Not while anything is being loaded: Nest 10 never changes its first answer, which is wrong while the dependencies are not known. */
  private dependsOnRequest(provider: Provider): boolean {
    return this.growths === 0 && !provider.isDependencyTreeStatic();
  }

  /**
   * Only for factories of request or transient scope: Nest keeps their instances in a map that cannot be listed, and has no hook for new
   * ones. So they are adopted as they are made.
   */
  private wrap(factory: Provider): void {
    if (this.wrapped.has(factory)) return;
    this.wrapped.add(factory);
    for (const made of factory.getStaticTransientInstances()) this.adopt(made?.instance);
    const make = factory.metatype as (...args: unknown[]) => unknown;
    factory.metatype = (...args: unknown[]): unknown => {
      const made = make(...args);
      return made instanceof Promise ? made.then((instance: unknown) => this.adopt(instance)) : this.adopt(made);
    };
  }

  private adopt(instance: unknown): unknown {
    const isForeign = isObject(instance) && this.locksOf(prototypeOf(instance)).size > 0 && !(INTERCEPTOR_PROPERTY in instance);
    if (isForeign) adopt(instance, this.link);
    return instance;
  }

  /** Checks a class the first time. Reads only its prototypes, because reading the fields of an instance could run getters. */
  private locksOf(prototype: unknown): LockedMethods {
    if (!isObject(prototype)) return NONE;
    let locks = this.checked.get(prototype);
    if (!locks) {
      const inherited = this.locksOf(prototypeOf(prototype));
      const own = lockedMethodsOf(prototype) ?? NONE;
      for (const { definition } of own.values()) this.check(prototype, definition);
      for (const [method, { definition }] of inherited) if (!own.has(method)) this.checkOverride(prototype, definition);
      locks = own.size > 0 ? new Map([...inherited, ...own]) : inherited;
      this.checked.set(prototype, locks);
    }
    return locks;
  }

  private check(prototype: object, definition: LockDefinition): void {
    const uses: Use[] = [];
    // The plans of inner locks, too: one that cannot be made ends the boot.
    for (let lock: LockDefinition | undefined = definition; lock; lock = lock.inner) {
      uses.push({ definition: lock, plan: this.registry.planOf(lock) });
    }
    for (const use of uses) advise(use.plan, adviceOnParameters(prototype, use));
    advise(this.registry.planOf(definition), adviceOnSchedule(prototype, uses));
  }

  private checkOverride(prototype: object, definition: LockDefinition): void {
    const { method, className, kind } = definition;
    if (!ownFunction(prototype, method)) return;
    const name = String(method);
    const line =
      `${prototype.constructor.name}.${name} overrides ${className}.${name} without its ${DECORATORS[kind]}: ` +
      'its calls run without the lock, unless it calls the method of its parent. Decorate it, too.';
    advise(this.registry.planOf(definition), ['NDL_UNLOCKED_OVERRIDE', line]);
  }
}

/** `null` also for a proxy that throws. */
function prototypeOf(object: object): object | null {
  try {
    return Reflect.getPrototypeOf(object);
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
