import { HOUR } from '../../core/util/clock.js';
import type { Inspector } from '../../core/store/inspector.js';
import { renewable, supportedBy, type LockStore } from '../../core/store/lock-store.js';
import { countDownLatchDriver } from './count-down-latch.driver.js';
import { mutexDriver } from './mutex.driver.js';
import { clientsOf } from './connection/own.client.js';
import type { RedisClient } from './connection/redis.client.js';
import { RedisConnection } from './connection/redis.connection.js';
import { uptimeOf } from './scripts/redis.uptime.js';
import { checkStoreOptions, type RedisStoreOptions } from './connection/redis.options.js';
import { RedisWakeUps } from './waiting/redis.wakeups.js';
import { sharingDrivers } from './sharing.driver.js';

export type { RedisClient };
export type { NodeRedisClient, RedisConnectionOptions, RedisStoreOptions } from './connection/redis.options.js';

/**
 * Locks on Redis 7.0 or later, or Valkey. It connects with the first request.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function redisStore(given: RedisStoreOptions): LockStore {
  const options = checkStoreOptions(given);
  return renewable(() => storeOf(options));
}

function storeOf(options: RedisStoreOptions): LockStore {
  const { requestTimeout = 1000, fenceTimeout = HOUR, replicaAcks = 0 } = options;
  const makeClient = clientsOf(options, requestTimeout);
  const open = (replicas?: number): RedisConnection => new RedisConnection(makeClient(), requestTimeout, replicas);
  const connection = open();
  const wakeUps = new RedisWakeUps(connection);
  // A WAIT delays all that is sent over the same connection.
  const acked = replicaAcks > 0 ? open(replicaAcks) : connection;
  const sharing = sharingDrivers(connection, acked, fenceTimeout, wakeUps);
  return {
    name: 'redis',
    requestTimeout,
    mutex: mutexDriver(connection, acked, fenceTimeout, wakeUps),
    ...sharing,
    countDownLatch: countDownLatchDriver(connection, wakeUps),
    inspector: loadedInspector(async () => {
      const { RedisInspector } = await import('./operate/redis.inspector.js');
      return new RedisInspector(connection, sharing.semaphore);
    }),
    bus: wakeUps.bus,
    doctor: {
      checks: async () => (await import('./operate/redis.doctor.js')).redisChecks(connection),
    },
    onTrouble(listener) {
      connection.breakListeners.add(listener);
      return () => connection.breakListeners.delete(listener);
    },
    remembers: uptimeOf(connection),
    supports(feature) {
      return supportedBy(this, feature);
    },
    async close() {
      wakeUps.close();
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
