import type { LatchChange, LatchDriver, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import type { Tenancy } from '../../core/store/lease-driver.js';
import { scripts } from './scripts/lua.scripts.js';
import type { RedisConnection } from './connection/redis.connection.js';
import { integerOf, isYes, listOf, millisecondsOf, textOf } from './redis.replies.js';
import { RedisScript } from './scripts/redis.script.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** The count-down latch on Redis: one hash, with all that belongs to it, so that all of it expires together. */
export class RedisCountDownLatchDriver implements LatchDriver {
  private readonly sets: RedisScript;
  private readonly counts: RedisScript;
  private readonly looks: RedisScript;
  private readonly leaves: RedisScript;

  constructor(
    connection: RedisConnection,
    readonly wakeUps: RedisWakeUps,
  ) {
    this.sets = new RedisScript(connection, scripts.latch.trySetCount);
    this.counts = new RedisScript(connection, scripts.latch.countDown);
    this.looks = new RedisScript(connection, scripts.latch.look);
    this.leaves = new RedisScript(connection, scripts.latch.leave, { mayBeLate: true });
  }

  trySetCount({ key, ttl, operation, count }: LatchChange & { readonly count: number }): Promise<boolean> {
    return this.sets.ask(key, [ttl, operation.line, operation.number, count], isYes);
  }

  countDown({ key, ttl, operation }: LatchChange): Promise<number> {
    return this.counts.ask(key, [ttl, operation.line, operation.number], integerOf);
  }

  look({ key, owner, queue }: LatchLook): Promise<LatchState | undefined> {
    return this.looks.ask(key, [queue ? owner : '', this.wakeUps.inbox], stateOf);
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.leaves.ask(key, [owner], isYes);
  }
}

function stateOf(reply: unknown): LatchState | undefined {
  const fields = listOf(reply);
  if (fields.length === 0) return undefined;
  const [count, id, round, remaining] = listOf(fields, 4);
  return { count: integerOf(count), id: textOf(id), round: integerOf(round), remaining: millisecondsOf(remaining) };
}
