import { createHash } from 'node:crypto';
import type { RedisConnection } from './redis.connection.js';

/** A Lua script that is sent by its hash, and whole where the server does not know it: at first, after a restart or SCRIPT FLUSH. */
export class RedisScript {
  private readonly sha: string;

  constructor(private readonly source: string) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }

  /** As {@link RedisConnection.request}; how much to send is asked each time it is sent. The reply is what the client gives, and is to be checked. */
  run(
    connection: RedisConnection,
    keyCount: () => number,
    keysAndArgs: () => readonly (string | number)[],
    isAbandoned?: () => boolean,
  ): Promise<unknown> {
    return connection.request(async () => {
      const { client } = connection;
      try {
        return await client.evalsha(this.sha, keyCount(), ...keysAndArgs());
      } catch (error) {
        // Whoever gave up has sent its leave by now: an acquire behind that would be an orphan.
        if (!String((error as Error | undefined)?.message).startsWith('NOSCRIPT') || isAbandoned?.()) throw error;
        return await client.eval(this.source, keyCount(), ...keysAndArgs());
      }
    }, isAbandoned);
  }
}
