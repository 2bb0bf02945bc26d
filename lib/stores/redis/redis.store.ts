// eslint-disable-next-line @typescript-eslint/ban-ts-comment -- it must also hold where there is no error
/** @ts-ignore -- without ioredis its options have no type */
import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis';
import { HOUR, now } from '../../core/util/clock.js';
import { configError } from '../../core/model/errors.js';
import type { Inspector } from '../../core/store/inspector.js';
import { supportedBy, type LockStore } from '../../core/store/lock-store.js';
import { RedisPipelines } from './connection/redis.pipelines.js';
import { RedisCountDownLatchDriver } from './count-down-latch.driver.js';
import { ioredis, nodeRedisAdapter } from './clients.cjs';
import { RedisMutexDriver } from './mutex.driver.js';
import type { NodeRedisClient } from './node-redis/node-redis.client.js';
import type { RedisClient } from './connection/redis.client.js';
import { RedisConnection } from './connection/redis.connection.js';
import { RedisUptime } from './connection/redis.uptime.js';
import { checkStoreOptions, isNodeRedis } from './connection/redis.options.js';
import { RedisWakeUps } from './waiting/redis.wakeups.js';
import { sharingDrivers } from './sharing.driver.js';

export type { NodeRedisClient, RedisClient };

/** Where the server is; exactly one of these. */
export type RedisConnectionOptions =
  | {
      /** `redis://` or `rediss://`. */
      url: string;
    }
  | {
      /**
       * A client of your own, which is never closed by us: of ioredis (single, Sentinel or Cluster), or for one server of `redis` (node-redis, version 5
       * or 6). One that is not connected yet is connected with the first request.
       */
      client: RedisClient | NodeRedisClient;
    }
  | {
      /** The options of ioredis for its client. */
      options: RedisOptions;
    }
  | {
      /** Nodes of a Redis Cluster to begin with. */
      cluster: ClusterNode[];
      clusterOptions?: ClusterOptions;
    }
  | {
      sentinels: NonNullable<RedisOptions['sentinels']>;
      /** The master's name at the sentinels. */
      name: string;
      options?: RedisOptions;
    };

/** Options of {@link redisStore}. */
export type RedisStoreOptions = RedisConnectionOptions & {
  /** Milliseconds that a single request may take, connecting included. Default 1000. */
  requestTimeout?: number;
  /** Milliseconds for which the last fencing token of an unused key is remembered. Later ones grow all the same, by the server's clock. Default one hour. */
  fenceTimeout?: number;
  /**
   * How many replicas must have a grant, or a renewal, for it to count; default 0. With fewer of them an acquire is a transient `StoreError`. It costs the
   * replicas' round trip, and a second connection except on Cluster, where other requests to the node wait meanwhile. No consensus: the replica that has it
   * may lose the election to one that has not, unless all must have it.
   */
  replicaAcks?: number;
};

const LONGEST_RECONNECT_DELAY = 500;
/** Milliseconds until a Cluster client asks again, where the node that should have the key does not serve it. */
const REDIRECTION_DELAY = 100;
/** Milliseconds in which nobody can know whether a new connection leads to the master. */
const SHORTEST_RECONNECT = 200;

/**
 * Locks on Redis 7.0 or later, or Valkey. It connects with the first request.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function redisStore(given: RedisStoreOptions): LockStore {
  const options = checkStoreOptions(given);
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

function connect(options: Exclude<RedisStoreOptions, { client: unknown }>, requestTimeout: number): RedisClient {
  const { Cluster, Redis } = ioredis((cause) => {
    throw configError('STORE', 'redisStore: install ioredis, or pass a client of redis (node-redis) as redisStore({ client }).', { cause });
  });
  const ours = ownOptions(requestTimeout);
  if ('url' in options) return new Redis(options.url, ours);
  if ('sentinels' in options) {
    const { sentinels, name } = options;
    // Without the detector a client stays with a demoted master, and its subscriber receives no message of a release.
    const following = { failoverDetector: true, sentinelRetryStrategy: reconnectDelay };
    return new Redis({ ...ours, ...following, ...options.options, sentinels, name, lazyConnect: true });
  }
  if ('cluster' in options) {
    const { clusterOptions } = options;
    return new Cluster(options.cluster, {
      clusterRetryStrategy: reconnectDelay,
      // A node that hangs is not the only one that knows where the keys are.
      slotsRefreshTimeout: Math.ceil(requestTimeout / 4),
      // What is not served within the time of a request is not asked any longer.
      maxRedirections: Math.max(Math.ceil(requestTimeout / REDIRECTION_DELAY), 3),
      retryDelayOnFailover: REDIRECTION_DELAY,
      retryDelayOnClusterDown: REDIRECTION_DELAY,
      // A script may be answered with fewer keys.
      retryDelayOnTryAgain: REDIRECTION_DELAY / 4,
      ...clusterOptions,
      redisOptions: { ...ours, ...clusterOptions?.redisOptions },
      lazyConnect: true,
    });
  }
  return new Redis({ ...ours, ...options.options, lazyConnect: true });
}

/** A connection of its own: a WAIT delays all that is sent over the same connection. A Cluster client has one to each node. */
function ackedConnection(connection: RedisConnection, replicas: number, isOwned: boolean): RedisConnection {
  const { client, requestTimeout } = connection;
  const ours = isOwned ? { reconnectOnError: onceDemoted() } : ownOptions(requestTimeout);
  const own = client.isCluster ? client : client.duplicate(ours);
  return new RedisConnection(own, requestTimeout, own !== client, new RedisPipelines(own, requestTimeout, replicas), connection);
}

const reconnectDelay = (times: number): number => Math.min(50 * times, LONGEST_RECONNECT_DELAY);

/** A client of our own is usable within a second of the server's return. Single, it repeats nothing by itself, since we do. */
function ownOptions(requestTimeout: number): RedisOptions {
  return {
    lazyConnect: true,
    // ioredis 5 keeps the process alive for as long where a connection is closed while it is made.
    disconnectTimeout: 100,
    autoResendUnfulfilledCommands: false,
    connectTimeout: requestTimeout,
    // A connection that has gone silent is not mended by waiting for TCP.
    socketTimeout: requestTimeout,
    sentinelCommandTimeout: requestTimeout,
    retryStrategy: reconnectDelay,
    // How long to wait while a restarted server loads its data is not for that server to guess.
    maxLoadingRetryTime: 300,
    reconnectOnError: onceDemoted(),
  };
}

/**
 * A master that became a replica answers so to each request that is under way; the name now leads to another one. With each of these answers, ioredis would
 * begin to close the connection once more, and leave a listener behind.
 */
function onceDemoted(): (error: Error) => boolean {
  let seenAt = -Infinity;
  return ({ message }) => {
    if (!message.startsWith('READONLY') || now() < seenAt + SHORTEST_RECONNECT) return false;
    seenAt = now();
    return true;
  };
}
