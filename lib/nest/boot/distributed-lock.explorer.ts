import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService, LazyModuleLoader } from '@nestjs/core';
import { adopt, type Adopter, Enrolment } from './adoption.js';
import { DistributedLockInterceptor } from '../aspect/distributed-lock.interceptor.js';
import { definitionOf, joinPointOf } from '../aspect/distributed-lock.join-point.js';
import { adviceOn } from './lock-advice.js';
import { LockRegistry } from '../lock-registry.js';

/** Checks every decorated method at boot, and adopts instances from factories and values, into which Nest injects nothing. */
@Injectable()
export class LockExplorer implements Adopter, OnModuleInit, OnApplicationShutdown {
  private readonly checked = new WeakMap<object, boolean>();
  private readonly factories = new WeakSet<object>();
  // Begins here and not in onModuleInit: hooks of earlier modules, and tests that run no hooks, may call an instance of a factory before that.
  private readonly enrolment = new Enrolment(this);

  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(LockRegistry) private readonly registry: LockRegistry,
    @Inject(DistributedLockInterceptor) readonly interceptor: DistributedLockInterceptor,
    @Inject(LazyModuleLoader) private readonly loader: LazyModuleLoader,
  ) {}

  onModuleInit(): void {
    this.explore();
    const load = this.loader.load.bind(this.loader);
    this.loader.load = async (...args) => {
      const module = await load(...args);
      this.explore();
      return module;
    };
  }

  async onApplicationShutdown(): Promise<void> {
    this.enrolment.leave();
    try {
      // A method that is still running may call other locked methods of its instance.
      await this.registry.onApplicationShutdown();
    } finally {
      this.enrolment.end();
    }
  }

  explore(): void {
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      const instance = wrapper.instance as unknown;
      if (isObject(instance)) this.adopt(instance);
      else this.check((wrapper.metatype as { prototype?: unknown } | null)?.prototype);
      if (wrapper.inject && !this.factories.has(wrapper)) this.adoptFrom(wrapper);
    }
  }

  /** A request-scoped factory creates its instances later; a transient one has already created several. */
  private adoptFrom(factory: { metatype: unknown; getStaticTransientInstances(): ({ instance?: unknown } | undefined)[] }): void {
    this.factories.add(factory);
    for (const made of factory.getStaticTransientInstances()) this.adopt(made?.instance);
    const make = factory.metatype as (...args: unknown[]) => unknown;
    factory.metatype = (...args: unknown[]): unknown => {
      const made = make(...args);
      return made instanceof Promise ? made.then((instance: unknown) => this.adopt(instance)) : this.adopt(made);
    };
  }

  private adopt(instance: unknown): unknown {
    if (isObject(instance) && this.check(prototypeOf(instance))) adopt(instance, this.enrolment);
    return instance;
  }

  /** Whether a class has any locked method. Reads only its prototypes, because reading the fields of an instance could run getters. */
  private check(prototype: unknown): boolean {
    if (!isObject(prototype) || prototype === Object.prototype) return false;
    let isLocked = this.checked.get(prototype);
    if (isLocked === undefined) {
      const isParentLocked = this.check(prototypeOf(prototype));
      isLocked = this.checkOwn(prototype) || isParentLocked;
      this.checked.set(prototype, isLocked);
    }
    return isLocked;
  }

  private checkOwn(prototype: object): boolean {
    let isLocked = false;
    for (const method of Reflect.ownKeys(prototype)) {
      // Read from the descriptor, so that a getter does not run.
      const current: unknown = Reflect.getOwnPropertyDescriptor(prototype, method)?.value;
      for (let definition = definitionOf(joinPointOf(prototype, method) ?? current); definition; definition = definition.inner) {
        this.registry.planOf(definition);
        isLocked = true;
      }
      const advice = adviceOn(prototype, method, current);
      if (advice) this.registry.planOf(advice.definition).log(advice.level, advice.message);
    }
    return isLocked;
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
