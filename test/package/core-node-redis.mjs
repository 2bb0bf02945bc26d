// With `redis` alone: ioredis is neither installed nor needed, and missed only by those who ask for it.
import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import assert from 'node:assert/strict';
import { createClient } from 'redis';
import scenario from './core-scenario.cjs';

const make = () => {
  const client = createClient({ url: process.env.REDIS_URL });
  client.on('error', () => undefined);
  return client;
};
const clients = [make(), make()];
assert.throws(() => redisStore({ url: 'redis://localhost:1' }), /install ioredis, or pass a client of redis/);
const [store, otherStore] = clients.map((client) => redisStore({ client }));
const end = () => clients.forEach((client) => client.destroy());
await scenario({ Locks, LockTimeoutError, store, otherStore, end });
