// With `redis` alone: ioredis is neither installed nor needed, and missed only by those who ask for it.
import { Locks, LockTimeoutError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
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
const missing = [postgresStore({ url: 'postgres://localhost:1' }), zookeeperStore({ connectionString: 'localhost:1' })];
const told = Promise.all(
  missing.map((each) =>
    assert.rejects(new Locks(each, { logger: false }).acquire('a'), /^LockConfigError: .* is not installed: npm install /),
  ),
);
const [store, otherStore] = clients.map((client) => redisStore({ client }));
const end = () => clients.forEach((client) => client.destroy());
await told;
await scenario({ Locks, LockTimeoutError, store, otherStore, end });
