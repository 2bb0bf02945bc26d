import { createHash } from 'node:crypto';
import type { RedisConnection } from './redis.connection.js';

/** A Lua script that is sent by its hash, and whole where the server does not know it: at first, after a restart or SCRIPT FLUSH. */
export class RedisScript<Reply> {
  private readonly sha: string;

  constructor(private readonly source: string) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }

  /** As {@link RedisConnection.request}. */
  run(
    connection: RedisConnection,
    keys: readonly string[],
    args: readonly (string | number)[],
    isAbandoned?: () => boolean,
  ): Promise<Reply> {
    return connection.request(() => this.send(connection, keys, args, isAbandoned), isAbandoned);
  }

  private async send(
    { client }: RedisConnection,
    keys: readonly string[],
    args: readonly (string | number)[],
    isAbandoned?: () => boolean,
  ): Promise<Reply> {
    try {
      return (await client.evalsha(this.sha, keys.length, ...keys, ...args)) as Reply;
    } catch (error) {
      // Whoever gave up has sent its leave by now: an acquire behind that would be an orphan.
      if (!(error as Error).message.startsWith('NOSCRIPT') || isAbandoned?.()) throw error;
      return (await client.eval(this.source, keys.length, ...keys, ...args)) as Reply;
    }
  }
}
