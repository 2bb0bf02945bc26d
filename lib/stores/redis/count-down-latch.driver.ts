import type { Tenancy } from '../../core/driver.js';
import type { StoreError } from '../../core/errors.js';
import type { LatchChange, LatchDriver, LatchLook, LatchState } from '../../core/latch.js';
import { lua } from './lua.generated.js';
import type { RedisConnection } from './redis.connection.js';
import { refusalOf } from './redis.keys.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

type LookScriptReply = [] | [count: string, id: string, round: string, remaining: number];

const READ = lua['count-down-latch/read'];
const TRY_SET_COUNT = new RedisScript<0 | 1>(READ + lua['count-down-latch/try-set-count']);
const COUNT_DOWN = new RedisScript<number>(READ + lua['count-down-latch/count-down']);
const LOOK = new RedisScript<LookScriptReply>(READ + lua['count-down-latch/look']);
const LEAVE = new RedisScript<0 | 1>(lua['count-down-latch/leave']);

/** The count-down latch on Redis: one hash, with all that belongs to it, so that all of it expires together. */
export class RedisCountDownLatchDriver implements LatchDriver {
  constructor(
    private readonly connection: RedisConnection,
    readonly wakeUps: RedisWakeUps,
  ) {}

  async trySetCount({ key, ttl, operation, count, abandoned }: LatchChange & { readonly count: number }): Promise<boolean> {
    const reply = await this.run(TRY_SET_COUNT, key, [ttl, operation.line, operation.number, count], abandoned);
    return Number(reply) === 1;
  }

  async countDown({ key, ttl, operation, abandoned }: LatchChange): Promise<number> {
    return Number(await this.run(COUNT_DOWN, key, [ttl, operation.line, operation.number], abandoned));
  }

  async look({ key, owner, queue, abandoned }: LatchLook): Promise<LatchState | undefined> {
    const [count, id, round, remaining] = await this.run(LOOK, key, [queue ? owner : '', this.wakeUps.inbox], abandoned);
    if (id === undefined) return undefined;
    return { count: Number(count), id, round: Number(round), remaining: Number(remaining) };
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.run(LEAVE, key, [owner]);
  }

  private async run<Reply>(script: RedisScript<Reply>, key: string, args: (string | number)[], abandoned?: () => boolean): Promise<Reply> {
    const keysAndArgs = [key, ...args];
    try {
      return await script.run(
        this.connection,
        () => 1,
        () => keysAndArgs,
        abandoned,
      );
    } catch (error) {
      const { transient, cause } = error as StoreError;
      // What a missing answer has for a cause may be a trouble of long ago.
      throw !transient && cause instanceof Error ? refusalOf(key, cause) : error;
    }
  }
}
