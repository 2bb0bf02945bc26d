// A user's program without ioredis, type-checked against the packed package with the types of every library checked.
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { createClient, createCluster, createSentinel } from 'redis';

export const stores = [
  redisStore({ client: createClient({ url: 'redis://localhost:6379' }) }),
  redisStore({ client: createSentinel({ name: 'shop', sentinelRootNodes: [{ host: 'localhost', port: 26_379 }] }) }),
  redisStore({ client: createCluster({ rootNodes: [{ url: 'redis://localhost:7000' }] }), requestTimeout: 500 }),
];
export const locks = new Locks(stores[0]!);
