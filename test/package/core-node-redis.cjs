// With `redis` alone: ioredis is neither installed nor needed, and missed only by those who ask for it.
const { Locks, LockTimeoutError } = require('nestjs-distributed-lock/core');
const { redisStore } = require('nestjs-distributed-lock/redis');
const { postgresStore } = require('nestjs-distributed-lock/postgres');
const { zookeeperStore } = require('nestjs-distributed-lock/zookeeper');
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
const missing = [postgresStore({ url: 'postgres://localhost:1' }), zookeeperStore({ connectionString: 'localhost:1' })];
const told = Promise.all(
  missing.map((each) =>
    assert.rejects(new Locks(each, { logger: false }).acquire('a'), /^LockConfigError: .* is not installed: npm install /),
  ),
);
const [store, otherStore] = clients.map((client) => redisStore({ client }));
const end = () => clients.forEach((client) => client.destroy());
void told.then(() => scenario({ Locks, LockTimeoutError, store, otherStore, end }));
