import type { CallHandler, ExecutionContext, Type } from '@nestjs/common';
import { defer, isObservable, type Observable, type ObservableInput } from 'rxjs';
import { LockConfigError } from '../../core/model/errors.js';
import type { GuardedCall } from '../../primitives/lock.js';
import type { LockDefinition, Method } from '../decorators/lock-definition.js';
import type { ReturnKind } from '../distributed-lock.options.js';

/** One call of a decorated method. For the interceptor it is the execution context, of type `'method'`, and the handler that runs the method. */
export class MethodCall implements ExecutionContext, CallHandler {
  constructor(
    readonly definition: LockDefinition,
    readonly returns: ReturnKind,
    private readonly joinPoint: Method,
    /** The instance that the method is called on. */
    readonly target: object,
    private readonly args: unknown[],
  ) {}

  /** @throws {LockConfigError} if the method does not return what it should. This can be known only at the call. */
  proceed(): unknown {
    const { original, where } = this.definition;
    const result = original.apply(this.target, this.args);
    if (!IS[this.returns](result)) throw wrongReturn(result, where, this.returns);
    return result;
  }

  /** Not for iterables: their items do not pass through the interceptor. */
  handle(): Observable<unknown> {
    return defer(() => this.proceed() as ObservableInput<unknown>);
  }

  /** The argument of an `onTimeout` function. */
  get forTimeout(): GuardedCall {
    const { args, target, definition } = this;
    return { args, target, method: definition.method };
  }

  getType<T extends string>(): T {
    return 'method' as T;
  }

  getClass<T>(): Type<T> {
    return this.target.constructor as Type<T>;
  }

  getHandler(): Method {
    return this.joinPoint;
  }

  getArgs<T extends unknown[]>(): T {
    return this.args as T;
  }

  getArgByIndex<T>(index: number): T {
    return this.args[index] as T;
  }

  switchToHttp(): ReturnType<ExecutionContext['switchToHttp']> {
    return { getRequest: () => this.getArgByIndex(0), getResponse: () => this.getArgByIndex(1), getNext: () => this.getArgByIndex(2) };
  }

  switchToRpc(): ReturnType<ExecutionContext['switchToRpc']> {
    return { getData: () => this.getArgByIndex(0), getContext: () => this.getArgByIndex(1) };
  }

  switchToWs(): ReturnType<ExecutionContext['switchToWs']> {
    return { getClient: () => this.getArgByIndex(0), getData: () => this.getArgByIndex(1), getPattern: () => this.getArgByIndex(2) };
  }
}

const NAMES = { promise: 'a Promise', observable: 'an Observable', iterable: 'an async iterable' };

const IS: Record<ReturnKind, (value: unknown) => boolean> = {
  promise: (value) => isObject(value) && 'then' in value && typeof value.then === 'function',
  observable: isObservable,
  iterable: (value) => isObject(value) && Symbol.asyncIterator in value,
};

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function wrongReturn(result: unknown, where: string, expected: ReturnKind): LockConfigError {
  const actual = (['observable', 'iterable'] as const).find((kind) => IS[kind](result));
  return new LockConfigError(
    actual
      ? `${where}: the method returned ${NAMES[actual]}: say so with returns: '${actual}'.`
      : `${where}: the method did not return ${NAMES[expected]}, so its lock could not be held until it ended.`,
  );
}
