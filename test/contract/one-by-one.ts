import type { Misbehaviour } from './open-locks.js';

/** Acquires reach the store one after the other, in the order in which they are sent: the first when `start` resolves. */
export function oneByOne(start: Promise<unknown>, onSent: () => void): Misbehaviour {
  let last = start;
  return (real) => ({
    acquire(request) {
      onSent();
      const reply = last.then(() => real.acquire(request));
      last = reply;
      return reply;
    },
  });
}
