import { setImmediate as turn } from 'node:timers/promises';

/** Blocks the event loop, as long synchronous work does, or a pause of the whole process. */
export function standStill(milliseconds: number): void {
  const end = performance.now() + milliseconds;
  while (performance.now() < end);
}

/** Blocks the event loop, and resolves on its first turn after that: timers that are due have fired, and nothing else has. */
export async function firstTurnAfterStandingStill(milliseconds: number): Promise<void> {
  await turn();
  standStill(milliseconds);
  await turn();
}
