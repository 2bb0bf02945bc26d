import type { Redis } from 'ioredis';
import { LATCH } from '../worker/keys.js';

/** Measures that must not grow. */
export interface Sample {
  /** s since the beginning of its phase */
  at: number;
  /** MB after a garbage collection */
  heap: number;
  /** all that keeps the process alive: sockets, timers, requests */
  handles: number;
  /** of the client that the store uses */
  listeners: number;
  /** channels with a subscriber at the server */
  subscriptions: number;
  /** at the server, latches left out: they expire a minute after their last use */
  keys: number;
}

export const MEASURES = ['heap', 'handles', 'listeners', 'subscriptions', 'keys'] as const;
export type Measure = (typeof MEASURES)[number];

/** @param admin a connection that no lock uses */
export async function takeSample(at: number, admin: Redis, used: Redis): Promise<Sample> {
  const [keys, latches, channels] = await Promise.all([admin.dbsize(), admin.keys(`${LATCH}*`), admin.pubsub('CHANNELS')]);
  // Twice: what the first one finalizes the second one frees.
  globalThis.gc?.();
  await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc?.();
  return {
    at,
    heap: process.memoryUsage().heapUsed / 2 ** 20,
    handles: process.getActiveResourcesInfo().length,
    listeners: used.eventNames().reduce((sum, name) => sum + used.listenerCount(name), 0),
    subscriptions: channels.length,
    keys: keys - latches.length,
  };
}
