import { AsyncLocalStorage } from 'node:async_hooks';

type Step = IteratorResult<unknown, unknown>;

/** Runs the work under the lock of the call; resolves when the lock is released. The signal ends the wait for the lock. */
export type RunLocked = (work: () => Promise<unknown>, signal: AbortSignal) => Promise<unknown>;

/**
 * An async iterable that takes the lock with the first `next()`, and holds it until it ends or its consumer calls `return()`. The code of the
 * method runs inside the call chain, its consumer outside.
 *
 * Not an async generator, because there `return()` waits for a pending `next()`, which may never settle.
 */
export class LockedIterable implements AsyncGenerator<unknown, unknown, unknown> {
  private iterator: AsyncIterator<unknown> | undefined;
  private inside: <T>(work: () => T) => T = (work) => work();
  private opening: Promise<void> | undefined;
  /** Ends the iteration for the interceptor, which then releases the lock. */
  private finish: ((result: unknown) => void) | undefined;
  /** Settles when the lock is released. */
  private settled: Promise<void> = Promise.resolve();
  private readonly wait = new AbortController();
  private isOver = false;

  constructor(
    private readonly runLocked: RunLocked,
    private readonly method: () => AsyncIterable<unknown>,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(value?: unknown): Promise<Step> {
    if (this.isOver) return { done: true, value: undefined };
    this.opening ??= this.begin();
    try {
      await this.opening;
    } catch (error) {
      // A wait that `return()` has ended is no error of a pending `next()`.
      if (!this.wait.signal.aborted) {
        this.isOver = true;
        throw error;
      }
    }
    return this.step((iterator) => iterator.next(value));
  }

  /** Ends the iteration at once, whether it holds the lock, waits for it or has not begun. */
  async return(value?: unknown): Promise<Step> {
    const { iterator } = this;
    if (!this.isOver && iterator?.return) return this.step((inner) => inner.return?.(value) as Promise<Step>);
    if (!this.isOver && iterator) await this.end(undefined);
    this.isOver = true;
    this.wait.abort();
    return { done: true, value: await value };
  }

  async throw(error?: unknown): Promise<Step> {
    if (!this.isOver && this.iterator?.throw) return this.step((inner) => inner.throw?.(error) as Promise<Step>);
    await this.return();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  /** Takes the lock and calls the method. */
  private begin(): Promise<void> {
    return new Promise((resolve, reject) => {
      const released = this.runLocked(() => this.iteration(resolve), this.wait.signal);
      this.settled = released.then((result) => {
        // Without an iterator, it is the result of `onTimeout`.
        if (result !== undefined) this.iterator ??= itemsOf(result);
      });
      this.settled.then(resolve, reject);
    });
  }

  /** The interceptor holds the lock until this settles. */
  private iteration(begun: () => void): Promise<unknown> {
    return new Promise((resolve) => {
      if (this.isOver) return resolve(undefined);
      const items = this.method();
      this.inside = AsyncLocalStorage.snapshot();
      this.iterator = items[Symbol.asyncIterator]();
      this.finish = resolve;
      begun();
    });
  }

  private async step(ask: (iterator: AsyncIterator<unknown>) => Promise<Step>): Promise<Step> {
    const { iterator } = this;
    if (!iterator) return { done: true, value: undefined };
    let step: Step;
    try {
      step = await this.inside(() => ask(iterator));
    } catch (error) {
      this.isOver = true;
      this.finish?.(Promise.reject(error));
      await this.settled.catch(() => undefined);
      throw error;
    }
    if (step.done) await this.end(step.value);
    return step;
  }

  private async end(result: unknown): Promise<void> {
    this.isOver = true;
    this.finish?.(result);
    await this.settled;
  }
}

/** The items of an iterable; any other value is one item. */
async function* itemsOf(result: unknown): AsyncGenerator<unknown> {
  const isIterable = typeof result === 'object' && result !== null && (Symbol.asyncIterator in result || Symbol.iterator in result);
  if (isIterable) yield* result as AsyncIterable<unknown>;
  else yield result;
}
