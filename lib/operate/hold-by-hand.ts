import { ownerIds } from '../core/model/owner.js';
import type { LockStore } from '../core/store/lock-store.js';

/** Milliseconds of a lease that outlasts the requests. */
const SHORTEST = 10_000;

/**
 * Takes a free key, and keeps it for so long, also when this process ends.
 *
 * @param words that others see as the app of the holder.
 * @returns the owner; `null`: somebody has the key.
 * @throws {LockError} if a request failed. The key is released then, unless the store does not answer, or keeps it already.
 */
export async function holdByHand({ mutex }: LockStore, key: string, length: number, words: string): Promise<string | null> {
  // Names of apps have no spaces, and no `kept:` before them.
  const owner = ownerIds(words.replaceAll(/(?<=^kept):|[\s\p{Cc}@]+/gu, '-').slice(0, 100))();
  try {
    // A store may refuse a lease that is too long for it.
    const { granted } = await mutex.acquire({ key, owner, ttl: Math.max(SHORTEST, length), tokens: 1, queue: false });
    if (granted) await mutex.release({ key, owner, keepFor: length });
    return granted ? owner : null;
  } catch (error) {
    await mutex.release({ key, owner, keepFor: 0 }).catch(() => undefined);
    throw error;
  }
}
