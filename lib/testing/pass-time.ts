import { fakeClock, nextDue, requireFakeClock, settled } from './fake-clock.js';
import { openProbes } from './lock-probe.js';

/**
 * Options for the test runner, so that its fake timers move the library, and the code under test:
 * `jest.useFakeTimers(fakeTimers.jest)`, `vi.useFakeTimers(fakeTimers.vitest)`.
 */
export const fakeTimers: {
  jest: { doNotFake: ('nextTick' | 'queueMicrotask' | 'setImmediate' | 'clearImmediate')[] };
  vitest: { toFake: ('setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval' | 'Date' | 'performance')[] };
} = {
  jest: { doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'] },
  vitest: { toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'] },
};

/**
 * Lets time pass under fake timers: from timer to timer, so that leases are renewed on the way, and after each timer until all promises have settled.
 *
 * @param ms milliseconds, at least 0 and finite.
 * @throws {Error} when time is real, with how to make it fake; or when a lease was taken under another clock than the present one.
 */
export async function passTime(ms: number): Promise<void> {
  if (!(ms >= 0 && ms < Infinity)) throw new RangeError(`passTime: the milliseconds must be finite and at least 0, not ${ms}.`);
  const clock = requireFakeClock('passTime()');
  for (const probe of openProbes()) probe.checkClock();
  const end = clock.now + ms;
  await settled();
  while (nextDue(clock) <= end) {
    clock.next();
    await settled();
    if (fakeClock() !== clock) throw new Error('passTime(): the fake timers were replaced while time passed.');
  }
  clock.tick(Math.max(0, end - clock.now));
  await settled();
}
