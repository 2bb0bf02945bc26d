// Many locks held at once, that only their renewal keeps.
import { sleep } from './clock.mjs';

const keyAt = (i) => `held-${i}`;

/** Takes `count` locks, a few at a time, and keeps them. */
export async function hold(contestant, { count, ttl }) {
  for (let i = 0; i < count; i += 500) {
    const some = Array.from({ length: Math.min(500, count - i) }, (_, j) => contestant.hold(keyAt(i + j), ttl));
    await Promise.all(some);
  }
  return { keys: Array.from({ length: count }, (_, i) => contestant.keyOf(keyAt(i))) };
}

/** What happens meanwhile is counted as any task's. */
export async function rest(contestant, { duration }) {
  await sleep(duration);
  return {};
}

/** A stranger who wants some of them while they are held: how often it got in. */
export async function lookAtHeld(contestant, { count, some, patience }) {
  let entered = 0;
  const step = Math.floor(count / some);
  const tries = Array.from({ length: some }, (_, i) =>
    contestant.locked(keyAt(i * step), 1000, () => void entered++).catch(() => undefined),
  );
  await Promise.race([Promise.all(tries), sleep(patience)]);
  return { entered };
}
