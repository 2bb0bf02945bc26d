/** Milliseconds: how long a store keeps a key for a waiter that does not take it. */
export const OFFER = 1_000;

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
