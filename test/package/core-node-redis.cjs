// With `redis` alone: ioredis is neither installed nor needed, and missed only by those who ask for it.
const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { redisStore } = require('nestjs-distributed-lock/redis');
const assert = require('node:assert/strict');
const { createClient } = require('redis');
const scenario = require('./core-scenario.cjs');

const make = () => {
  const client = createClient({ url: process.env.REDIS_URL });
  client.on('error', () => undefined);
  return client;
};
const clients = [make(), make()];
assert.throws(() => redisStore({ url: 'redis://localhost:1' }), /install ioredis, or pass a client of redis/);
const [store, otherStore] = clients.map((client) => redisStore({ client }));
const end = () => clients.forEach((client) => client.destroy());
void scenario({ Locks, LockTimeoutError, store, otherStore, end });
