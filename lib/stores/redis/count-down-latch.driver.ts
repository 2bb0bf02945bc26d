import type { Tenancy } from '../../core/store/lease-driver.js';
import type { StoreError } from '../../core/model/errors.js';
import type { LatchChange, LatchDriver, LatchLook, LatchState } from '../../core/store/latch-driver.js';
import { scripts } from './lua.scripts.js';
import type { RedisConnection } from './redis.connection.js';
import { refusalOf } from './redis.keys.js';
import { integerOf, isYes, listOf, millisecondsOf, textOf } from './redis.replies.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

const TRY_SET_COUNT = new RedisScript(scripts.latch.trySetCount);
const COUNT_DOWN = new RedisScript(scripts.latch.countDown);
const LOOK = new RedisScript(scripts.latch.look);
const LEAVE = new RedisScript(scripts.latch.leave);

/** The count-down latch on Redis: one hash, with all that belongs to it, so that all of it expires together. */
export class RedisCountDownLatchDriver implements LatchDriver {
  constructor(
    private readonly connection: RedisConnection,
    readonly wakeUps: RedisWakeUps,
  ) {}

  async trySetCount({ key, ttl, operation, count }: LatchChange & { readonly count: number }): Promise<boolean> {
    return isYes(await this.run(TRY_SET_COUNT, key, [ttl, operation.line, operation.number, count]));
  }

  async countDown({ key, ttl, operation }: LatchChange): Promise<number> {
    return integerOf(await this.run(COUNT_DOWN, key, [ttl, operation.line, operation.number]));
  }

  async look({ key, owner, queue }: LatchLook): Promise<LatchState | undefined> {
    const reply = listOf(await this.run(LOOK, key, [queue ? owner : '', this.wakeUps.inbox]));
    if (reply.length === 0) return undefined;
    const [count, id, round, remaining] = listOf(reply, 4);
    return { count: integerOf(count), id: textOf(id), round: integerOf(round), remaining: millisecondsOf(remaining) };
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.run(LEAVE, key, [owner]);
  }

  private async run(script: RedisScript, key: string, args: (string | number)[]): Promise<unknown> {
    const keysAndArgs = [key, ...args];
    try {
      return await script.run(this.connection, 1, keysAndArgs);
    } catch (error) {
      const { transient, cause } = error as StoreError;
      // What a missing answer has for a cause may be a trouble of long ago.
      throw !transient && cause instanceof Error ? refusalOf(key, cause) : error;
    }
  }
}
