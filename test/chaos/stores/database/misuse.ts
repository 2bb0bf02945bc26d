import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../../random.js';

/** The used part of a pool that a worker lends its store. */
export interface LentPool {
  readonly max: number;
  /** Takes a connection. */
  take(): Promise<LentConnection>;
  end(): Promise<void>;
}

export interface LentConnection {
  query(text: string): Promise<unknown>;
  release(): void;
}

/** An app beside: it fills its pool with work for up to so many ms, and gives connections back with a transaction that is open. The result ends it, and the pool. */
export function misuse(pool: LentPool, random: Random, longest: number): () => Promise<void> {
  const stopping = new AbortController();
  const wait = (ms: number): Promise<void> => pause(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => undefined);
  const once = async (): Promise<void> => {
    const isFull = random.chance(0.5);
    const taking = Array.from({ length: isFull ? pool.max : 1 }, () => pool.take());
    const clients = (await Promise.allSettled(taking)).flatMap((taken) => (taken.status === 'fulfilled' ? [taken.value] : []));
    if (!isFull) await clients[0]?.query('BEGIN').catch(() => undefined);
    else await wait(random.int(20, longest));
    for (const client of clients) client.release();
  };
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await wait(random.int(300, 1_500));
      if (!stopping.signal.aborted) await once();
    }
  })();
  return async () => {
    stopping.abort();
    await running;
    await pool.end();
  };
}
