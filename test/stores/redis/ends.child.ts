// Uses a store in one of several ways, then has nothing more to do: it must end by itself.
import { Redis, type RedisOptions } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore, type RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { createClient } from 'redis';
import { eventually } from '../../support/eventually.js';
import { tellParent } from '../../support/child.js';

export interface EndsArgs {
  connection: RedisOptions;
  /** where it is found otherwise than by `connection` */
  store?: RedisStoreOptions;
  /** one after the other, where there are several */
  way: Way | Way[];
}
export type Way = keyof typeof ways;
export type EndsMessage = { type: 'did'; what: string };

const ways = {
  async 'never uses it'(): Promise<void> {
    ownLocks().mutex('key');
  },
  async 'closes it'(): Promise<void> {
    const locks = ownLocks();
    await locks.using('key', () => undefined);
    await locks.close();
  },
  async 'closes it with a lease that is held'(): Promise<void> {
    const locks = ownLocks();
    await locks.acquire('key', { keyTimeout: 60_000 });
    await locks.close();
  },
  async 'closes it while it connects'(): Promise<void> {
    const locks = ownLocks();
    locks.acquire('key').catch(() => undefined);
    await new Promise(setImmediate);
    await locks.close();
  },
  async 'closes it after it could not connect'(): Promise<void> {
    const locks = ownLocks();
    await locks.acquire('key', { waitTimeout: 0 }).catch((error: Error) => tellParent({ type: 'did', what: error.name }));
    await locks.close();
  },
  async 'disconnects its client, and never closes the store, with a lease that is held'(): Promise<void> {
    const client = new Redis(connection);
    await new Locks(redisStore({ client })).acquire('key', { keyTimeout: 60_000, maxHold: 60_000 });
    client.disconnect();
  },
  async 'disconnects its clients, and never closes the stores, after leases of theirs were renewed'(): Promise<void> {
    const nodeRedis = createClient({ socket: { host: connection.host, port: connection.port! } });
    const ioredis = new Redis(connection);
    const stores = [redisStore({ client: await nodeRedis.connect() }), redisStore({ client: ioredis })];
    const leases = await Promise.all(stores.map((store, index) => new Locks(store).acquire(`of ${index}`, { keyTimeout: 5_000 })));
    await eventually(() => stores.every(({ mutex }) => mutex.wakeUps!.isOpen));
    for (const lease of leases) await lease.release();
    nodeRedis.destroy();
    ioredis.disconnect();
  },
  async 'has telemetry that throws'(): Promise<void> {
    const observe = (): never => {
      throw new Error('no telemetry');
    };
    const store = redisStore({ options: connection });
    try {
      new Locks(store, { logger: false, telemetry: { observe } });
    } catch (error) {
      tellParent({ type: 'did', what: (error as Error).message });
    }
  },
  async 'is an app whose boot is refused'(): Promise<void> {
    // Only here, as Nest takes a second to load.
    await import('reflect-metadata');
    const { Module } = await import('@nestjs/common');
    const { NestFactory } = await import('@nestjs/core');
    const { DistributedLock, DistributedLockModule } = await import('nestjs-distributed-lock');
    class Shop {
      async buy(): Promise<void> {}
    }
    const options = { store: 'nowhere', returns: 'promise' } as const;
    const method = Object.getOwnPropertyDescriptor(Shop.prototype, 'buy')!;
    Object.defineProperty(Shop.prototype, 'buy', DistributedLock(options)(Shop.prototype, 'buy', method) ?? method);
    class App {}
    const locks = DistributedLockModule.forRoot({ store: redisStore({ options: connection }) });
    Module({ imports: [locks], providers: [Shop] })(App);
    await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false }).catch((error: Error) =>
      tellParent({ type: 'did', what: error.name }),
    );
  },
  async 'loses the server and has no listener for errors'(): Promise<void> {
    const locks = ownLocks();
    await locks.using('key', () => undefined);
    tellParent({ type: 'did', what: 'connected' });
    await new Promise((resolve) => process.once('message', resolve));
    await locks.acquire('key', { waitTimeout: 0 }).catch((error: Error) => tellParent({ type: 'did', what: error.name }));
    await locks.close();
  },
};

function ownLocks(): Locks {
  return new Locks(redisStore({ ...(store ?? { options: connection }), requestTimeout: 2_000 }), { logger: false });
}

const { connection, store, way } = JSON.parse(process.argv[2]!) as EndsArgs;
for (const each of [way].flat()) await ways[each]();
