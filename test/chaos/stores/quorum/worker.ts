import type { RedisOptions } from 'ioredis';
import { quorumStore } from '../../../../lib/stores/quorum/quorum.store.js';
import { redisStore } from '../../../../lib/stores/redis/redis.store.js';
import type { OpenedStore, Opening } from '../store.js';

/** ms: the longest keyTimeout */
export const QUARANTINE = 5_000;

export interface QuorumTarget {
  members: RedisOptions[];
}

export function open({ members }: QuorumTarget, { requestTimeout, random }: Opening): OpenedStore {
  const memberTimeout = random.pick([100, 200]);
  const stores = members.map((options) => redisStore({ options, requestTimeout }));
  const store = quorumStore(stores, { quarantine: QUARANTINE, memberTimeout });
  return { store, detail: `memberTimeout ${memberTimeout} ms,` };
}
