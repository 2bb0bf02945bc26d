import { setTimeout as realPause } from 'node:timers/promises';

/** Moves the clock forward in the midst of a turn; nothing is told of it. Set by virtual-time.ts. */
let skip: ((milliseconds: number) => void) | undefined;

export function useSkip(by: (milliseconds: number) => void): void {
  skip = by;
}

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
