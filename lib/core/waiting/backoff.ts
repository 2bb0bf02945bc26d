const FASTEST_POLL = 3;
const FIRST_POLL = 10;
/** Milliseconds after a key was handed over. */
const BRISK = 100;
const SLOWEST_TURN = 500;
const SLOWEST_AT_HEAD = 50;

/**
 * Milliseconds until a waiter without a queue entry asks again. It asks often at first, because most holds are short, and then less and less
 * often, up to two retryIntervals. Random jitter keeps the waiters of one key from asking at the same time.
 *
 * @param attempt how often it has asked, from 1.
 * @param remaining milliseconds until the holder's lease ends, if it is not renewed; negative: unknown.
 */
export function pollDelay(attempt: number, retryInterval: number, remaining: number, random = Math.random): number {
  const step = Math.min(retryInterval, FIRST_POLL * 2 ** Math.min(attempt - 1, 20));
  const delay = step * (1 + random());
  return remaining < 0 ? delay : Math.min(delay, remaining + 1 + step * random());
}

/**
 * Milliseconds until a queued waiter asks without a wake-up: a message can be lost, a holder can die, and a plain DEL sends no message.
 *
 * @param remaining as for {@link pollDelay}.
 * @param queueEntryLifetime milliseconds for which the store keeps a queue entry after the last request for it.
 */
export function queuedDelay(retryInterval: number, remaining: number, queueEntryLifetime = Infinity): number {
  const longest = Math.min(2 * retryInterval, queueEntryLifetime / 2);
  return remaining < 0 ? longest : Math.min(longest, remaining + 1);
}

/**
 * Milliseconds until a queued waiter asks at a store without wake-ups: soon for the first one, later for others, and before an offer ends.
 *
 * @param since milliseconds since the key was handed over: the next turn is likely to be as short.
 */
export function turnDelay(ahead: number, attempt: number, ttl: number, since = Infinity, random = Math.random): number {
  const poll = since < BRISK ? FASTEST_POLL + (FIRST_POLL - FASTEST_POLL) * random() : FIRST_POLL * 2 ** Math.min(attempt - 1, 6);
  const delay = poll * (1 + ahead);
  return Math.min(delay, SLOWEST_AT_HEAD * (1 + ahead), SLOWEST_TURN, Math.max(FIRST_POLL, ttl / 2));
}
