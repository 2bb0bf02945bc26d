import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { Redis } from 'ioredis';

/**
 * KEYS: the log (a stream), the largest token seen. ARGV: the writer's fencing token, its pid.
 * Reply: 1 accepted, 0 refused. Either is logged, with the server's own time in microseconds.
 */
const APPEND = `
local seen = tonumber(redis.call('GET', KEYS[2]) or '0')
local accepted = tonumber(ARGV[1]) >= seen and 1 or 0
if accepted == 1 then redis.call('SET', KEYS[2], ARGV[1]) end
local time = redis.call('TIME')
local at = time[1] .. string.format('%06d', time[2])
redis.call('XADD', KEYS[1], 'MAXLEN', '~', '100000', '*', 'token', ARGV[1], 'pid', ARGV[2], 'accepted', accepted, 'at', at)
return accepted`;

/** The resource that only the leader may write to. It does not trust the lock: it refuses a token that is older than one it has seen. */
@Injectable()
export class Ledger implements OnApplicationShutdown {
  private readonly redis = new Redis(process.env.STORE_URL!, { lazyConnect: true });

  /** Ahead of the first write, which then need not wait for it. */
  async open(): Promise<void> {
    await this.redis.connect();
  }

  /** @returns `false` if it was refused: a newer leader has written already. */
  async append(token: number): Promise<boolean> {
    return (await this.redis.eval(APPEND, 2, '{ledger}:log', '{ledger}:token', token, process.pid)) === 1;
  }

  async onApplicationShutdown(): Promise<void> {
    await this.redis.quit();
  }
}
