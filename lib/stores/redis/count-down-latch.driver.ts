import type { LatchChange, LatchDriver, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import type { RedisConnection } from './connection/redis.connection.js';
import { integerOf, isYes, keyAlone, listOf, millisecondsOf, textOf } from './redis.values.js';
import { lua, RedisScript } from './scripts/redis.script.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** The count-down latch on Redis: one hash, with all that belongs to it, so that all of it expires together. */
export class RedisCountDownLatchDriver implements LatchDriver {
  private readonly sets: RedisScript<boolean>;
  private readonly counts: RedisScript<number>;
  private readonly looks: RedisScript<LatchState | undefined>;
  private readonly leaves: RedisScript<boolean>;

  constructor(
    connection: RedisConnection,
    readonly wakeUps: RedisWakeUps,
  ) {
    this.sets = new RedisScript(connection, lua('count-down-latch/try-set-count'), keyAlone, isYes);
    this.counts = new RedisScript(connection, lua('count-down-latch/count-down'), keyAlone, integerOf);
    this.looks = new RedisScript(connection, lua('count-down-latch/look'), keyAlone, stateOf);
    this.leaves = new RedisScript(connection, lua('count-down-latch/leave'), keyAlone, isYes, { mayBeLate: true });
  }

  trySetCount({ key, ttl, operation, count }: LatchChange & { readonly count: number }): Promise<boolean> {
    return this.sets.ask(key, [ttl, operation.line, operation.number, count]);
  }

  countDown({ key, ttl, operation }: LatchChange): Promise<number> {
    return this.counts.ask(key, [ttl, operation.line, operation.number]);
  }

  look({ key, owner, queue }: LatchLook): Promise<LatchState | undefined> {
    return this.looks.ask(key, [queue ? owner : '', this.wakeUps.inbox]);
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.leaves.ask(key, [owner]);
  }
}

function stateOf(reply: unknown): LatchState | undefined {
  const fields = listOf(reply);
  if (fields.length === 0) return undefined;
  const [count, id, round, remaining] = listOf(fields, 4);
  return { count: integerOf(count), id: textOf(id), round: integerOf(round), remaining: millisecondsOf(remaining) };
}
