import type { RedisOptions } from 'ioredis';
import { quorumStore } from '../../../../lib/stores/quorum/quorum.store.js';
import { redisStore } from '../../../../lib/stores/redis/redis.store.js';
import type { Random } from '../../random.js';
import type { OpenedStore } from '../store.js';

/** ms: the longest keyTimeout */
export const QUARANTINE = 5_000;

export interface QuorumTarget {
  members: RedisOptions[];
}

export function open(target: unknown, random: Random): OpenedStore {
  const { members } = target as QuorumTarget;
  const requestTimeout = random.pick([300, 600, 1_000]);
  const memberTimeout = random.pick([100, 200]);
  const stores = members.map((options) => redisStore({ options, requestTimeout }));
  const store = quorumStore(stores, { quarantine: QUARANTINE, memberTimeout });
  return { store, detail: `memberTimeout ${memberTimeout} ms,` };
}
