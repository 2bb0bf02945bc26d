import { it } from './runner.js';
/** Milliseconds: how long a store keeps a key for a waiter that does not take it. */
export const OFFER = 1_000;

/**
 * Milliseconds: a lease that a test waits to see the end of. On a busy machine it may be over before the next line, so nothing may depend on its being held.
 * Every other lease on a real clock is at least 5 s long.
 */
export const SHORT_LEASE = 100;

/**
 * A test of something that lasts for a moment only. A run that fails counts if it took less than that: otherwise the machine stood still, and the test begins again.
 *
 * @param setUp with a key of its own.
 */
export function itInTime(title: string, setUp: () => unknown, run: () => Promise<void>, moment = OFFER): void {
  it(title, async () => {
    for (;;) {
      await setUp();
      const start = performance.now();
      try {
        return await run();
      } catch (error) {
        if (performance.now() - start < moment) throw error;
      }
    }
  });
}
