import type { Type } from '@nestjs/common';
import type { LockDecorator } from 'nestjs-distributed-lock';

/** A class of this name, whose methods do nothing under these locks, as if written so. */
export function classOf<Name extends PropertyKey>(
  name: string,
  methods: Record<Name, LockDecorator | MethodDecorator>,
): Type<Record<Name, () => Promise<void>>> {
  class Locked {}
  Object.defineProperty(Locked, 'name', { value: name });
  for (const method of Reflect.ownKeys(methods)) {
    const descriptor = { value: async () => undefined, writable: true, configurable: true };
    (methods[method as Name] as MethodDecorator)(Locked.prototype, method, descriptor);
    Object.defineProperty(Locked.prototype, method, descriptor);
  }
  return Locked as Type<Record<Name, () => Promise<void>>>;
}
