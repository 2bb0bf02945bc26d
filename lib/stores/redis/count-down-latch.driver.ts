import type { LatchDriver, LatchState } from '../../core/store/latch-driver.js';
import type { RedisConnection } from './connection/redis.connection.js';
import { integerOf, isYes, keyAlone, listOf, millisecondsOf, textOf } from './redis.values.js';
import { lua, RedisScript } from './scripts/redis.script.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** The count-down latch on Redis: one hash, with all that belongs to it, so that all of it expires together. */
export function countDownLatchDriver(connection: RedisConnection, wakeUps: RedisWakeUps): LatchDriver {
  const sets = new RedisScript(connection, lua('count-down-latch/try-set-count'), keyAlone, isYes);
  const counts = new RedisScript(connection, lua('count-down-latch/count-down'), keyAlone, integerOf);
  const looks = new RedisScript(connection, lua('count-down-latch/look'), keyAlone, stateOf);
  const leaves = new RedisScript(connection, lua('count-down-latch/leave'), keyAlone, isYes, { mayBeLate: true });
  return {
    wakeUps,
    trySetCount: ({ key, ttl, operation: { line, number }, count }) => sets.ask(key, [ttl, line, number, count]),
    countDown: ({ key, ttl, operation: { line, number } }) => counts.ask(key, [ttl, line, number]),
    look: ({ key, owner, queue }) => looks.ask(key, [queue ? owner : '', wakeUps.inbox]),
    leave: async ({ key, owner }) => void (await leaves.ask(key, [owner])),
  };
}

function stateOf(reply: unknown): LatchState | undefined {
  const fields = listOf(reply);
  if (fields.length === 0) return undefined;
  const [count, id, round, remaining] = listOf(fields, 4);
  return { count: integerOf(count), id: textOf(id), round: integerOf(round), remaining: millisecondsOf(remaining) };
}
