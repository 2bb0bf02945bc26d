import { Inject, Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { DistributedLockInterceptor } from './distributed-lock.interceptor.js';
import { adopt, definitionOf } from './distributed-lock.join-point.js';
import type { LockDefinition } from './lock-definition.js';
import { LockRegistry } from './lock-registry.js';

/** At boot: checks every decorated method, and makes those of instances from factories and values work. */
@Injectable()
export class LockExplorer implements OnModuleInit {
  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(LockRegistry) private readonly registry: LockRegistry,
    @Inject(DistributedLockInterceptor) private readonly interceptor: DistributedLockInterceptor,
  ) {}

  onModuleInit(): void {
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      const instance = wrapper.instance as unknown;
      if (instance !== null && typeof instance === 'object') this.adoptMade(instance);
      else this.check((wrapper.metatype as { prototype?: unknown } | null)?.prototype);
      if (wrapper.inject) this.adoptFrom(wrapper);
    }
  }

  /** A factory of request scope or transient makes instances later, or has made several. */
  private adoptFrom(factory: { metatype: unknown; getStaticTransientInstances(): ({ instance?: unknown } | undefined)[] }): void {
    for (const made of factory.getStaticTransientInstances()) this.adoptMade(made?.instance);
    const make = factory.metatype as (...args: unknown[]) => unknown;
    factory.metatype = (...args: unknown[]): unknown => {
      const made = make(...args);
      if (made instanceof Promise) return made.then((instance: unknown) => this.adoptMade(instance));
      return this.adoptMade(made);
    };
  }

  private adoptMade(instance: unknown): unknown {
    if (this.check(instance)) adopt(instance as object, this.interceptor);
    return instance;
  }

  /** Whether it has locked methods at all. */
  private check(object: unknown): boolean {
    const definitions = definitionsOf(object);
    for (const definition of definitions) this.registry.planOf(definition);
    return definitions.length > 0;
  }
}

/** The locks on an object's methods, its prototypes' included. */
function definitionsOf(object: unknown): LockDefinition[] {
  const definitions: LockDefinition[] = [];
  for (let level = object; isOwnObject(level); level = Reflect.getPrototypeOf(level)) {
    for (const key of Reflect.ownKeys(level)) {
      // By descriptor: a getter must not run.
      const method: unknown = Reflect.getOwnPropertyDescriptor(level, key)?.value;
      for (let definition = definitionOf(method); definition; definition = definition.inner) definitions.push(definition);
    }
  }
  return definitions;
}

function isOwnObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && value !== Object.prototype;
}
