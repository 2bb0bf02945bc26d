import type { StoreReport } from '../../core/store/lock-store.js';
import { RedisInfo } from './doctor/redis.info.js';
import type { RedisConnection } from './redis.connection.js';

/** What the server says of itself. A user without the right to INFO learns nothing. */
export async function reportOf(connection: RedisConnection): Promise<StoreReport> {
  const text = await connection.request((client) => client.info?.() ?? Promise.resolve('')).catch(() => '');
  const info = new RedisInfo(typeof text === 'string' ? text : '');
  return {
    server: info.server,
    wakesWaiters: true,
    advice: [info.ageAdvice, info.evictionAdvice].filter((advice) => advice !== undefined),
  };
}
