// Callers of one process who want one key, and add to a counter that nothing else guards. They tell how often a vote was split.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { QuorumDriver } from '../../../lib/stores/quorum/quorum.driver.js';
import { tellParent } from '../../support/child.js';

export interface CrowdArgs {
  connections: RedisOptions[];
  counter: RedisOptions;
  key: string;
  callers: number;
  turns: number;
}
export type CrowdMessage = { type: 'ready' } | { type: 'done'; splitVotes: number; tokens: number[] };

const { connections, counter, key, callers, turns } = JSON.parse(process.argv[2]!) as CrowdArgs;
const redis = new Redis(counter);
const store = quorumStore(
  connections.map((options) => redisStore({ options, requestTimeout: 10_000 })),
  { quarantine: 0, memberTimeout: 2_500 },
);
const locks = new Locks(store, { logger: false });
const { ballots } = store.mutex as QuorumDriver;
const tokens: number[] = [];
const options = { keyTimeout: 20_000, waitTimeout: Infinity, retryInterval: 5_000 };

/** Nobody guards this but the lock. */
async function section(token: number): Promise<void> {
  const seen = Number(await redis.get('counter'));
  await redis.set('counter', seen + 1);
  tokens.push(token);
}

process.once('message', () => {
  const before = ballots.splitVotes;
  const calls = Array.from({ length: callers }, async () => {
    for (let turn = 0; turn < turns; turn++) await locks.using(key, (lease) => section(lease.fencingToken!), options);
  });
  void Promise.all(calls).then(async () => {
    tellParent({ type: 'done', splitVotes: ballots.splitVotes - before, tokens });
    await locks.close();
    redis.disconnect();
    process.disconnect();
  });
});
// Each has its inboxes open.
await locks.using(`${key}:warm-up`, () => new Promise((resolve) => setTimeout(resolve, 20)), options);
await locks.using(`${key}:warm-up`, () => undefined, options);
tellParent({ type: 'ready' });
