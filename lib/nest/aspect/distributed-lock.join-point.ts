import { defer, lastValueFrom } from 'rxjs';
import type { LockDefinition, Method } from '../decorators/lock-definition.js';
import { LockedPromise } from './distributed-lock.interceptor.js';
import { LockedIterable } from './locked-iterable.js';
import { MethodCall } from './method-call.js';
import { openCall, returnKindNow } from './open-call.js';

/** The function that replaces a decorated method: it has the same name, length and metadata, and calls the method through the interceptor. */
export function createJoinPoint(definition: LockDefinition): Method {
  function joinPoint(this: unknown, ...args: unknown[]): unknown {
    const target = this as object;
    const call = new MethodCall(definition, definition.returns ?? returnKindNow(target, definition), joinPoint, target, args);
    if (call.returns === 'promise') return promiseOf(call);
    return call.returns === 'observable' ? defer(() => openCall(call, call)) : new LockedIterable(call);
  }
  const { original } = definition;
  // Other decorators may have set properties on the function.
  for (const key of Reflect.ownKeys(original)) {
    if (key !== 'prototype') Object.defineProperty(joinPoint, key, Object.getOwnPropertyDescriptor(original, key) as PropertyDescriptor);
  }
  for (const key of Reflect.getOwnMetadataKeys(original) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, original), joinPoint);
  }
  return joinPoint;
}

/** Not `async`, because that would make one more promise for each call. */
function promiseOf(call: MethodCall): Promise<unknown> {
  try {
    const opened = openCall(call, call);
    return opened instanceof LockedPromise ? opened.run() : lastValueFrom(opened, { defaultValue: undefined });
  } catch (error) {
    return Promise.reject(error);
  }
}
