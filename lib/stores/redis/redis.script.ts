import { createHash } from 'node:crypto';
import type { RedisConnection } from './redis.connection.js';

/** A Lua script that is sent by its hash, and whole where the server does not know it: at first, after a restart or SCRIPT FLUSH. */
export class RedisScript {
  private readonly sha: string;

  constructor(private readonly source: string) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }

  /** As {@link RedisConnection.request}. The reply is what the client gives, and is to be checked. */
  run(connection: RedisConnection, keyCount: number, keysAndArgs: readonly (string | number)[]): Promise<unknown> {
    return connection.request(async (isOver) => {
      const { client } = connection;
      try {
        return await client.evalsha(this.sha, keyCount, ...keysAndArgs);
      } catch (error) {
        // The caller of a request that is over may have asked for its opposite since.
        if (!String((error as Error | undefined)?.message).startsWith('NOSCRIPT') || isOver()) throw error;
        return await client.eval(this.source, keyCount, ...keysAndArgs);
      }
    });
  }
}
