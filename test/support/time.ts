import { setTimeout as realPause } from 'node:timers/promises';

/** Moves the clock forward in the midst of a turn; nothing is told of it. Set by virtual-time.ts. */
let skip: ((milliseconds: number) => void) | undefined;

export function useSkip(by: (milliseconds: number) => void): void {
  skip = by;
}

/** Whether the clock of this test file is a virtual one. */
export const isVirtual = (): boolean => skip !== undefined;

/**
 * Milliseconds: a lease that a test waits to see the end of. On a busy machine it may be over before the next line, so nothing may depend on its being held.
 * Every other lease on a real clock is at least 5 s long.
 */
export const SHORT_LEASE = 100;

/** On the clock of the test file: the machine's, or a virtual one. */
export function pause<T = void>(milliseconds = 0, value?: T, options?: { signal?: AbortSignal }): Promise<T> {
  if (!skip || options?.signal) return realPause(milliseconds, value as T, options);
  return new Promise((resolve) => setTimeout(resolve, milliseconds, value as T));
}

/** As `AbortSignal.timeout`, on the same clock. */
export function signalAfter(milliseconds: number): AbortSignal {
  const caller = new AbortController();
  setTimeout(() => caller.abort(), milliseconds).unref();
  return caller.signal;
}

/** Blocks the event loop, as long synchronous work does, or a pause of the whole process. */
export function standStill(milliseconds: number): void {
  if (skip) return skip(milliseconds);
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** Blocks the event loop, and resolves when the timers have fired that are due by then. */
export async function firstTurnAfterStandingStill(milliseconds: number): Promise<void> {
  await pause();
  standStill(milliseconds);
  await pause();
}
