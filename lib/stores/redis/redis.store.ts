import { HOUR } from '../../core/util/clock.js';
import type { Inspector } from '../../core/store/inspector.js';
import { renewable, supportedBy, type LockStore } from '../../core/store/lock-store.js';
import { RedisCountDownLatchDriver } from './count-down-latch.driver.js';
import { nodeRedisAdapter } from './clients.cjs';
import { RedisMutexDriver } from './mutex.driver.js';
import type { NodeRedisClient } from './connection/node-redis.client.js';
import { connect, onceDemoted } from './connection/own.client.js';
import type { RedisClient } from './connection/redis.client.js';
import { RedisConnection } from './connection/redis.connection.js';
import { RedisUptime } from './scripts/redis.uptime.js';
import { checkStoreOptions, isNodeRedis, type RedisStoreOptions } from './connection/redis.options.js';
import { RedisWakeUps } from './waiting/redis.wakeups.js';
import { sharingDrivers } from './sharing.driver.js';

export type { NodeRedisClient, RedisClient };
export type { RedisConnectionOptions, RedisStoreOptions } from './connection/redis.options.js';

/**
 * Locks on Redis 7.0 or later, or Valkey. It connects with the first request.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function redisStore(given: RedisStoreOptions): LockStore {
  const options = checkStoreOptions(given);
  return 'client' in options ? storeOf(options) : renewable(() => storeOf(options));
}

function storeOf(options: RedisStoreOptions): LockStore {
  const { requestTimeout = 1000, fenceTimeout = HOUR, replicaAcks = 0 } = options;
  const isOwned = !('client' in options);
  const client = isOwned ? connect(options, requestTimeout) : clientOf(options.client);
  const connection = new RedisConnection(client, requestTimeout, isOwned);
  const wakeUps = new RedisWakeUps(connection);
  const acked = replicaAcks > 0 ? ackedConnection(connection, replicaAcks, isOwned) : connection;
  const sharing = sharingDrivers(connection, acked, fenceTimeout, wakeUps);
  const uptime = new RedisUptime(connection);
  return {
    name: 'redis',
    requestTimeout,
    mutex: new RedisMutexDriver(connection, acked, fenceTimeout, wakeUps),
    ...sharing,
    countDownLatch: new RedisCountDownLatchDriver(connection, wakeUps),
    inspector: loadedInspector(async () => {
      const { RedisInspector } = await import('./operate/redis.inspector.js');
      return new RedisInspector(connection, sharing.semaphore);
    }),
    bus: wakeUps.bus,
    doctor: {
      checks: async () => (await import('./operate/redis.doctor.js')).redisChecks(connection),
      rights: async (namespace) =>
        (await import('./operate/redis.users.js')).usersFor(connection.keyPrefix, namespace, client.isCluster === true),
    },
    onTrouble(listener) {
      connection.breakListeners.add(listener);
      return () => connection.breakListeners.delete(listener);
    },
    onWarning: connection.warnings.on,
    remembers: () => uptime.remembers(),
    supports(feature) {
      return supportedBy(this, feature);
    },
    async close() {
      wakeUps.close();
      uptime.forget();
      await Promise.all([...new Set([acked, connection])].map((each) => each.close()));
    },
  };
}

/** An inspector whose code is loaded by the first question. */
function loadedInspector(load: () => Promise<Inspector>): Inspector {
  let loading: Promise<Inspector> | undefined;
  const loaded = (): Promise<Inspector> => (loading ??= load());
  return {
    inspect: async (keys) => (await loaded()).inspect(keys),
    async *keys(...args) {
      yield* (await loaded()).keys(...args);
    },
    seize: async (request) => (await loaded()).seize(request),
    note: async (line) => (await loaded()).note(line),
  };
}

/** The code over a client of node-redis is loaded where one is lent. */
function clientOf(lent: RedisClient | NodeRedisClient): RedisClient {
  return isNodeRedis(lent) ? nodeRedisAdapter().adapterOf(lent) : lent;
}

/** A connection beside that one, which makes a duplicate of a lent client for itself. */
function ackedConnection(connection: RedisConnection, replicas: number, isOwned: boolean): RedisConnection {
  const { client, requestTimeout } = connection;
  const own = isOwned && !client.isCluster ? client.duplicate({ reconnectOnError: onceDemoted() }) : client;
  return new RedisConnection(own, requestTimeout, own !== client, replicas, connection);
}
