import { messageOf, StoreError } from '../../../core/model/errors.js';
import { awake as now } from '../../../core/util/clock.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import { keyAlone, millisecondsOf } from '../redis.values.js';
import { lua, RedisScript } from './redis.script.js';

/** Holds which process of the server has answered when first, of all that hold the same data. */
const KEY = 'nestjs-distributed-lock:since';

/**
 * Tells for how many milliseconds the server has forgotten nothing. A connection leads to one process of it, so it is asked once for each connection:
 * what was answered before a connection broke says nothing of the next one.
 *
 * @returns what rejects with a {@link StoreError} if the server does not tell it; a final one for a Cluster, whose nodes forget one by one.
 */
export function uptimeOf(connection: RedisConnection): () => Promise<number> {
  const script = new RedisScript(connection, lua('since'), keyAlone, millisecondsOf);
  /** When the server's memory began, on the monotonic clock. */
  let since: Promise<number> | undefined;
  const ask = async (): Promise<number> => {
    if (connection.client.isCluster) {
      throw new StoreError('A Redis Cluster cannot be a member of a quorum: give each member one server of its own.', { transient: false });
    }
    try {
      const age = await script.ask(KEY, []);
      return now() - age;
    } catch (cause) {
      if (!(cause instanceof StoreError) || cause.transient) throw cause;
      const advice = `the user needs the commands INFO, TIME, GET and SET, and the key ${KEY}, to tell whether the server was started again`;
      throw new StoreError(`${messageOf(cause)}: ${advice}.`, { transient: false, cause });
    }
  };
  connection.breakListeners.add(() => (since = undefined));
  return async () => {
    const asked = (since ??= ask());
    try {
      return now() - (await asked);
    } catch (error) {
      if (since === asked) since = undefined;
      throw error;
    }
  };
}
