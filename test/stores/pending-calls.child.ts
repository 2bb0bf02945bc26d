// Makes calls of a store, one after the other, and does nothing else: it must not end before the last one has settled.
import { Locks, type LockStore } from 'nestjs-distributed-lock/core';
import { etcdStore } from 'nestjs-distributed-lock/etcd';
import { memoryStore } from 'nestjs-distributed-lock/memory';
import { mysqlStore } from 'nestjs-distributed-lock/mysql';
import { postgresStore } from 'nestjs-distributed-lock/postgres';
import { quorumStore } from 'nestjs-distributed-lock/quorum';
import { redisStore, type NodeRedisClient } from 'nestjs-distributed-lock/redis';
import { zookeeperStore } from 'nestjs-distributed-lock/zookeeper';
import type * as nodeRedis from 'redis';
import { tellParent } from '../support/child.js';

export interface PendingArgs {
  store: keyof typeof STORES;
  /** all but the last are to be refused */
  calls: (keyof typeof CALLS)[];
  /** where nobody listens */
  port: number;
}
export type PendingMessage = { type: 'ran' };

const { store, calls, port } = JSON.parse(process.argv[2]!) as PendingArgs;
const requestTimeout = 2_000;
const KEY = 'key';

/** Its client does not connect again by itself, so nothing of it keeps the process alive. */
function resigned(): LockStore {
  return redisStore({ options: { port, retryStrategy: () => null }, requestTimeout });
}

async function overNodeRedis(name: string): Promise<LockStore> {
  const { createClient } = (await import(name)) as typeof nodeRedis;
  return redisStore({ client: createClient({ socket: { port } }) as NodeRedisClient, requestTimeout });
}

const STORES = {
  memory: () => memoryStore(),
  'redis by its URL': () => redisStore({ url: `redis://127.0.0.1:${port}`, requestTimeout }),
  'redis by options that do not connect again': resigned,
  'redis by a client of node-redis 5': () => overNodeRedis('redis'),
  'redis by a client of node-redis 6': () => overNodeRedis('redis-v6'),
  postgres: () => postgresStore({ url: `postgres://shop@127.0.0.1:${port}/shop`, requestTimeout }),
  mysql: () => mysqlStore({ url: `mysql://shop@127.0.0.1:${port}/shop`, requestTimeout }),
  etcd: () => etcdStore({ endpoints: [`http://127.0.0.1:${port}`], requestTimeout }),
  zookeeper: () => zookeeperStore({ connectionString: `127.0.0.1:${port}`, requestTimeout }),
  quorum: () => quorumStore([resigned(), resigned(), resigned()], { memberTimeout: requestTimeout }),
};

const ran = (): void => tellParent({ type: 'ran' });
const CALLS = {
  using: (locks: Locks) => locks.using(KEY, ran, { waitTimeout: 0 }),
  'using, which waits': (locks: Locks) => locks.using(KEY, ran, { waitTimeout: 100 }),
  'using, which waits without a limit': async (locks: Locks) => {
    await locks.acquire(KEY, { renew: false, keyTimeout: 100 });
    await locks.using(KEY, ran, { waitTimeout: Infinity });
  },
  acquire: (locks: Locks) => locks.acquire(KEY, { waitTimeout: 0 }),
  multiLock: (locks: Locks) => locks.multiLock([KEY, 'other']).acquire({ waitTimeout: 0 }),
  getCount: (locks: Locks) => locks.countDownLatch(KEY).getCount(),
  inspect: (locks: Locks) => locks.inspect(KEY),
  'the start of an app with failFast': () => startApp(true),
  'the start of an app, which then uses a lock': async () => {
    const { Locks } = await import('nestjs-distributed-lock');
    const app = await startApp(false);
    await app.get(Locks).using(KEY, ran, { waitTimeout: 0 });
  },
};

/** Nest takes a second to load. */
async function startApp(failFast: boolean) {
  await import('reflect-metadata');
  const { Module } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  const { DistributedLockModule } = await import('nestjs-distributed-lock');
  class App {}
  Module({ imports: [DistributedLockModule.forRoot({ store: await STORES[store](), failFast })] })(App);
  return NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
}

async function makeCalls(): Promise<void> {
  const locks = new Locks(await STORES[store](), { logger: false });
  const last = calls.pop()!;
  for (const call of calls) await CALLS[call](locks).catch(({ name }: Error) => console.log(`${call}: ${name}`));
  await CALLS[last](locks);
}

// Not awaited: Node ends a module that waits for nothing with 13, but a script and an app with 0.
void makeCalls();
