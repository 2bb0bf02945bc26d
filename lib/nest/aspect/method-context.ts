import type { ExecutionContext, Type } from '@nestjs/common';

/** The execution context of a call of a decorated method. Its type is `'method'`. */
export class MethodExecutionContext implements ExecutionContext {
  constructor(
    /** The instance that the method is called on. */
    readonly target: object,
    private readonly handler: (...args: unknown[]) => unknown,
    private readonly args: unknown[],
  ) {}

  getType<T extends string>(): T {
    return 'method' as T;
  }

  getClass<T>(): Type<T> {
    return this.target.constructor as Type<T>;
  }

  getHandler(): (...args: unknown[]) => unknown {
    return this.handler;
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
    return {
      getClient: () => this.getArgByIndex(0),
      getData: () => this.getArgByIndex(1),
      getPattern: () => this.getArgByIndex(2),
    };
  }
}
