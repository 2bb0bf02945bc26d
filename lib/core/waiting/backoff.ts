import type { ResolvedOptions } from '../model/options.js';

const FIRST_POLL = 10;
const SLOWEST_TURN = 500;
const SLOWEST_AT_HEAD = 50;
// By the law of large numbers the sum of so many draws is their mean.
const MOST_DRAWS = 1000;

/** Milliseconds that a caller waits in all: `waitTimeout`, else the sum of `retryCount - 1` draws from 1–2 × `retryInterval`. */
export function patienceOf(options: Pick<ResolvedOptions, 'retryCount' | 'retryInterval' | 'waitTimeout'>, random = Math.random): number {
  const { retryCount, retryInterval, waitTimeout } = options;
  if (waitTimeout !== undefined) return waitTimeout;
  if (retryCount === 0) return Infinity;
  const draws = retryCount - 1;
  if (draws > MOST_DRAWS) return draws * retryInterval * 1.5;
  let patience = 0;
  for (let draw = 0; draw < draws; draw++) patience += retryInterval * (1 + random());
  return patience;
}

/**
 * Milliseconds until a waiter without a place in a queue asks again. It asks often at first, since most holds are short, and ever less
 * often up to two retryIntervals; jitter keeps the waiters of one key from asking together.
 *
 * @param attempt how often it has asked, from 1.
 * @param remaining milliseconds that the holder's lease has left (negative: unknown): a crashed holder's key is free then.
 */
export function pollDelay(attempt: number, retryInterval: number, remaining: number, random = Math.random): number {
  const step = Math.min(retryInterval, FIRST_POLL * 2 ** Math.min(attempt - 1, 20));
  const delay = step * (1 + random());
  return remaining < 0 ? delay : Math.min(delay, remaining + 1 + step * random());
}

/**
 * Milliseconds until a queued waiter that is woken looks by itself: a wake-up may get lost, a holder die, and the classic recipe wakes nobody.
 *
 * @param remaining milliseconds that the holder's lease has left; negative: unknown.
 * @param placeLifetime milliseconds for which the store keeps a place that nobody asks for.
 */
export function queuedDelay(retryInterval: number, remaining: number, placeLifetime = Infinity): number {
  const longest = Math.min(2 * retryInterval, placeLifetime / 2);
  return remaining < 0 ? longest : Math.min(longest, remaining + 1);
}

/** Milliseconds until a queued waiter that nobody wakes asks whether its turn has come: soon at the head, later behind, within what an offer lasts. */
export function turnDelay(ahead: number, attempt: number, ttl: number): number {
  const delay = FIRST_POLL * (1 + ahead) * 2 ** Math.min(attempt - 1, 6);
  return Math.min(delay, SLOWEST_AT_HEAD * (1 + ahead), SLOWEST_TURN, Math.max(FIRST_POLL, ttl / 2));
}
