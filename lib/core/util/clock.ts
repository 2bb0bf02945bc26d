import { detached } from './detached.js';

/** Node fires a timer with a longer delay at once. */
const LONGEST_DELAY = 2 ** 31 - 1;

/** Milliseconds on the monotonic clock: wall clocks jump, and a deadline must not. */
export function now(): number {
  return performance.now();
}

/** For how many of its `ttl` milliseconds a lease counts as valid: the rest covers the drift between our clock and the store's. */
export function validity(ttl: number): number {
  return ttl - Math.max(2, ttl / 100);
}

/** `setTimeout` for a delay of any length, in whole milliseconds, never early; a delay beyond 24 days ends after 24 days. */
export function after(delay: number, callback: () => void): NodeJS.Timeout {
  return detached(() => setTimeout(callback, Math.min(Math.ceil(Math.max(delay, 0)), LONGEST_DELAY)));
}

/** Resolves after `delay` milliseconds. It does not keep the process alive. */
export function idle(delay: number): Promise<void> {
  return new Promise((resolve) => {
    after(delay, resolve).unref();
  });
}
