import type { Lock, Locks, UsingOptions } from 'nestjs-distributed-lock/core';
import { gate } from './gate.js';
import type { LocksOpener } from './open-locks.js';
import { outside } from './outside.js';

/** A call that waits, or has got in. */
export interface Call {
  readonly ended: Promise<unknown>;
  /** Ends its work. */
  end(): void;
}

/** Calls of `using` whose order is the test's: the next one comes when this one has its place in the queue. */
export class Places {
  /** Who got in, in that order. */
  readonly entered: string[] = [];

  /**
   * Resolves when the call has its place, or is in. Its work goes on until it is ended.
   *
   * @param opener of the kind of lock whose driver the call goes to.
   */
  async take(
    name: string,
    { open }: LocksOpener,
    key: string,
    options: UsingOptions = {},
    lockOf: (locks: Locks) => Lock = (locks) => locks.mutex(key),
  ): Promise<Call> {
    const [placed, end] = [gate(), gate()];
    const locks = open({
      misbehaving: (real) => ({ acquire: (request) => real.acquire(request).finally(() => request.queue && placed.open()) }),
    });
    const work = () => {
      this.entered.push(name);
      placed.open();
      return end.passed;
    };
    const call = outside(() => lockOf(locks).using(work, { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000, ...options }));
    const ended = call.catch((error: unknown) => error).finally(() => placed.open());
    await placed.passed;
    return { ended, end: () => end.open() };
  }
}
