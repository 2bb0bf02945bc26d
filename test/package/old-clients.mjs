// Clients that an app has for other work, and that cannot do what locks need. Each is refused where it is used for them, by an error that says so.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import pg from 'pg';
import { createClient } from 'redis';

for (const load of [createRequire(import.meta.url), (name) => import(name)]) {
  const entry = (name) => load(`nestjs-distributed-lock/${name}`);
  const { Locks, LockConfigError } = await entry('core');
  const { redisStore } = await entry('redis');
  const { postgresStore } = await entry('postgres');
  const { mysqlStore } = await entry('mysql');
  const { prometheus } = await entry('prometheus');
  const { openTelemetry } = await entry('opentelemetry');
  const acquire = async (store) => {
    const locks = new Locks(store);
    await locks.tryAcquire('order:42').finally(() => locks.close());
  };
  const uses = [
    ['ioredis', () => redisStore({ url: 'redis://127.0.0.1:1' })],
    ['redis', () => redisStore({ client: createClient() })],
    ['pg', () => acquire(postgresStore({ url: 'postgres://127.0.0.1:1/shop' }))],
    ['pg', () => postgresStore({ pool: new pg.Pool() })],
    ['mysql2', () => mysqlStore({ url: 'mysql://127.0.0.1:1/shop' })],
    ['prom-client', () => prometheus()],
    ['@opentelemetry/api', () => openTelemetry()],
  ];
  for (const [name, use] of uses) {
    await assert.rejects(
      async () => use(),
      (error) => {
        assert.ok(error instanceof LockConfigError, error);
        assert.match(error.message, /too old: version \d[\d.]+ or later is needed/);
        return error.message.includes(`: this version of ${name} is too old`);
      },
    );
  }
}
