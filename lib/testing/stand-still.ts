import { fakeClock, settled } from './fake-clock.js';

/**
 * The event loop stands still: no timer is called in time, and each that was due is called once, late. Under fake timers the clock jumps; else the
 * thread really blocks.
 *
 * @param ms milliseconds.
 */
export async function standStill(ms: number): Promise<void> {
  const clock = fakeClock();
  if (clock) {
    await settled();
    clock.jump(ms);
  } else {
    for (const end = performance.now() + ms; performance.now() < end;);
  }
  await settled();
}
