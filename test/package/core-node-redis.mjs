// With `redis` alone, by `require` and by `import`: ioredis is neither installed nor needed, and missed only by those who ask for it.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { createClient } from 'redis';
import scenario from './core-scenario.cjs';

const make = () => {
  const client = createClient({ url: process.env.REDIS_URL });
  client.on('error', () => undefined);
  return client;
};
for (const load of [createRequire(import.meta.url), (name) => import(name)]) {
  const { Locks, LockTimeoutError } = await load('nestjs-distributed-lock/core');
  const { redisStore } = await load('nestjs-distributed-lock/redis');
  const { postgresStore } = await load('nestjs-distributed-lock/postgres');
  const { zookeeperStore } = await load('nestjs-distributed-lock/zookeeper');
  assert.throws(() => redisStore({ url: 'redis://localhost:1' }), /install ioredis, or pass a client of redis/);
  for (const missing of [postgresStore({ url: 'postgres://localhost:1' }), zookeeperStore({ connectionString: 'localhost:1' })]) {
    const refused = new Locks(missing, { logger: false }).acquire('a');
    await assert.rejects(refused, /^LockConfigError: .* is not installed: npm install /);
  }
  const clients = [make(), make()];
  const [store, otherStore] = clients.map((client) => redisStore({ client }));
  await scenario({ Locks, LockTimeoutError, store, otherStore });
  for (const { isOpen } of clients) assert.equal(isOpen, false, 'a client that was not connected stays so');
}
