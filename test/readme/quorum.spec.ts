import { Locks, QuorumError, type LockStore } from 'nestjs-distributed-lock/core';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import { sharedPostgres } from '../support/shared-server.js';
import { rejection } from '../contract/rejection.js';
import { ofRedisAndPostgres, ofThreeServers } from './quorum.js';

let servers: RedisServer[];
beforeAll(async () => {
  servers = await Promise.all([1, 2, 3].map(() => startRedis({ port: 'free' })));
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

const urlOf = (index: number): string => `redis://127.0.0.1:${servers[index]!.port}`;

/** Servers that are new are in quarantine: then a lock is an outage, and never granted. */
async function isInQuarantine(store: LockStore): Promise<void> {
  const locks = new Locks(store, { logger: false });
  const error = await rejection(locks.acquire('order:42', { waitTimeout: 0 }));
  expect(error).toBeInstanceOf(QuorumError);
  expect(String(error)).toContain('does not vote yet');
  expect(store.supports('semaphore')).toBe(false);
  expect(() => locks.semaphore('order:42', { permits: 2 })).toThrow('no semaphores');
  await locks.close();
}

it('docs/quorum.md is right about three Redis servers, and that new ones do not vote yet', async () => {
  process.env.LOCK_SERVERS = [0, 1, 2].map(urlOf).join();
  await isInQuarantine(ofThreeServers());
});

it('docs/quorum.md is right about a mix of Redis and Postgres', async () => {
  process.env.REDIS_A = urlOf(0);
  process.env.REDIS_B = urlOf(1);
  process.env.DATABASE_URL = (await sharedPostgres()).url;
  await isInQuarantine(ofRedisAndPostgres());
});
