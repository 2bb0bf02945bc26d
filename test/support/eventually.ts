import { pause } from './time.js';

export { eventually, type EventuallyOptions } from '../../lib/testing/store/eventually.js';

/**
 * Shows an absence: `assertion` neither throws nor answers `false` for a while. It is the only sleep of a test on a real clock, and proves the more the longer
 * it is: nothing may depend on what happens meanwhile.
 *
 * @param during milliseconds; default: 200
 */
export async function staysTrue(assertion: () => unknown, during = 200): Promise<void> {
  const end = performance.now() + during;
  for (;;) {
    if ((await assertion()) === false)
      throw new Error(`It was not so any more with ${Math.max(0, Math.round(end - performance.now()))} ms to go.`);
    const left = end - performance.now();
    if (left <= 0) return;
    await pause(Math.min(left, 10));
  }
}
