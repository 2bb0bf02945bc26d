// A database that the server does not have: ioredis would go on in database 0, where other apps are.
import type { Redis } from 'ioredis';
import { Redis as Five } from 'ioredis-v5';
import { createClient } from 'redis';
import { type Locks, StoreError } from 'nestjs-distributed-lock/core';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { rejection } from '../../support/rejection.js';
import { useRedis } from './setting.js';

const setting = useRedis({ port: 'free' });
beforeEach(async () => {
  // The server then knows the scripts: the first request is granted.
  await open({ options: { port: setting.server.port } }).using('key', () => undefined);
  await setting.redis.flushall();
});

const open = (options: RedisStoreOptions): Locks => setting.overIoredis({ requestTimeout: 5000, ...options });
const lent = (db: number): Redis => setting.client({ db, retryStrategy: () => null });

/** It is ready before the answer to SELECT. */
const hasty = (db: number) => {
  const client = new Five({ port: setting.server.port, db, lazyConnect: true });
  const duplicate = client.duplicate.bind(client);
  client.duplicate = (options) => duplicate({ ...options, enableReadyCheck: false, disableClientInfo: true });
  return client;
};
const selected = async (db: number) => {
  const client = lent(0);
  await client.select(db).catch(() => Object.assign(client.condition!, { select: db }));
  return client;
};

const arrangements: [string, (db: number) => Promise<RedisStoreOptions>][] = [
  ['a URL', async (db) => ({ url: `redis://localhost:${setting.server.port}/${db}` })],
  ['options', async (db) => ({ options: { port: setting.server.port, db } })],
  [
    'options without the check that the server is ready',
    async (db) => ({ options: { port: setting.server.port, db, enableReadyCheck: false } }),
  ],
  ['replicaAcks', async (db) => ({ url: `redis://localhost:${setting.server.port}/${db}`, replicaAcks: 1 })],
  ['a client', async (db) => ({ client: lent(db) })],
  ['a client that has selected it', async (db) => ({ client: await selected(db) })],
  ['a client of ioredis 5 that is ready at once', async (db) => ({ client: hasty(db) as never })],
  ['a client of node-redis', async (database) => ({ client: createClient({ url: `redis://localhost:${setting.server.port}`, database }) })],
];

it.each(arrangements)(
  'with %s, a database that the server does not have refuses every call, and nothing is left in another one',
  async (_, optionsOf) => {
    const locks = open(await optionsOf(99));
    const calls = [
      () => locks.acquire('key', { waitTimeout: Infinity }),
      () => locks.readWriteLock('rw').read.acquire(),
      () => locks.semaphore('permits', { permits: 2 }).acquire(),
      () => locks.countDownLatch('latch').trySetCount(1),
      () => locks.inspect('key'),
    ];
    for (let round = 0; round < 2; round++) {
      for (const call of calls) {
        const error = await rejection(call());
        expect(error).toBeInstanceOf(StoreError);
        expect(error).toMatchObject({
          transient: false,
          // By now it is known, so that nothing has to be released.
          ...(round > 0 && { isUnsent: true }),
          message: expect.stringMatching(/(DB index is out of range|in database 0, not in 99)\. Choose a database/),
        });
      }
    }
    await locks.close();
    expect((await setting.redis.keys('*')).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  },
);

it.each(arrangements.filter(([name]) => name !== 'replicaAcks'))(
  'with %s, a database that the server has is used',
  async (_, optionsOf) => {
    const locks = open(await optionsOf(15));
    const lease = await locks.acquire('key');
    expect(await lent(15).exists('key')).toBe(1);
    expect(await lent(0).exists('key')).toBe(0);
    expect(await lease.release()).toBe(true);
  },
);
