// Many locks held at once, which live as long as they are renewed.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sleep } from './clock.mjs';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc');

const keyAt = (i) => `held-${i}`;

/** Results of the contestant's `hold`: a user keeps each as long as the lock. */
const holdings = [];

/** Takes `count` locks, a few at a time, and keeps them. `heap`: the bytes that they occupy after a garbage collection. */
export async function hold(contestant, { count, ttl }) {
  const before = heapUsed();
  for (let i = 0; i < count; i += 500) {
    const some = Array.from({ length: Math.min(500, count - i) }, (_, j) => contestant.hold(keyAt(i + j), ttl));
    holdings.push(...(await Promise.all(some)));
  }
  const heap = heapUsed() - before;
  return { heap, keys: Array.from({ length: count }, (_, i) => contestant.keyOf(keyAt(i))) };
}

function heapUsed() {
  gc();
  return process.memoryUsage().heapUsed;
}

/** Waits; what happens meanwhile is counted as in any task. */
export async function rest(contestant, { duration }) {
  await sleep(duration);
  return {};
}

/** Wants some of the locks that another process holds: how often it got in. */
export async function lookAtHeld(contestant, { count, some, patience }) {
  let entered = 0;
  const step = Math.floor(count / some);
  const tries = Array.from({ length: some }, (_, i) =>
    contestant.locked(keyAt(i * step), 1000, () => void entered++).catch(() => undefined),
  );
  await Promise.race([Promise.all(tries), sleep(patience)]);
  return { entered };
}
