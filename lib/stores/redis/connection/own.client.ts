// eslint-disable-next-line @typescript-eslint/ban-ts-comment -- it must also hold where there is no error
/** @ts-ignore -- without ioredis its options have no type */
import type { ClusterOptions, RedisOptions } from 'ioredis';
import { configError, messageOf } from '../../../core/model/errors.js';
import { checkClient } from '../../../core/store/check-client.js';
import { KEEP_ALIVE, now } from '../../../core/util/clock.js';
import { ioredis, nodeRedisAdapter } from '../clients.cjs';
import { type RedisClient, withoutOthers } from './redis.client.js';
import { isNodeRedis, NO_DUPLICATE, type RedisStoreOptions } from './redis.options.js';

const LONGEST_RECONNECT_DELAY = 500;
/** Milliseconds until a Cluster client asks again, where the node that should have the key does not serve it. */
const REDIRECTION_DELAY = 100;
/** Milliseconds in which nobody can know whether a new connection leads to the master. */
const SHORTEST_RECONNECT = 200;

/** Returns what makes clients of our own, which all lead to one database. */
export function clientsOf(options: RedisStoreOptions, requestTimeout: number): () => RedisClient {
  if (!('client' in options)) return () => connect(options, requestTimeout);
  const { client } = options;
  if (isNodeRedis(client)) return () => nodeRedisAdapter().overNodeRedis(client, requestTimeout);
  let db: number | undefined;
  // While ioredis connects again, what was selected before is the previous condition.
  const databaseOf = ({ prevCondition, condition, options }: RedisClient): number =>
    (prevCondition ?? condition)?.select ?? options.db ?? 0;
  return () => duplicateOf(client, requestTimeout, () => (db ??= databaseOf(client)));
}

function connect(options: Exclude<RedisStoreOptions, { client: unknown }>, requestTimeout: number): RedisClient {
  const { Cluster, Redis } = ioredis((cause) => {
    throw configError('STORE', 'redisStore: install ioredis, or pass a client of redis (node-redis) as redisStore({ client }).', { cause });
  });
  checkClient('redisStore', 'ioredis', Redis !== undefined);
  const ours = ownOptions(requestTimeout);
  // What is sent again would be done after its caller was rejected, and a script that the server does not know is no reason to connect again.
  const { lazyConnect, autoResendUnfulfilledCommands, reconnectOnError } = ours;
  const fixed = { lazyConnect, autoResendUnfulfilledCommands, reconnectOnError };
  if ('url' in options) return new Redis(options.url, ours);
  if ('sentinels' in options) {
    const { sentinels, name } = options;
    return new Redis({ ...ours, ...options.options, ...fixed, sentinels, name });
  }
  if ('cluster' in options) {
    const { clusterOptions } = options;
    const { redisOptions, ...others } = ownClusterOptions(requestTimeout);
    return new Cluster(options.cluster, {
      ...others,
      ...clusterOptions,
      redisOptions: { ...redisOptions, ...clusterOptions?.redisOptions, ...fixed },
      lazyConnect: true,
    });
  }
  return new Redis({ ...ours, ...options.options, ...fixed });
}

const CREDENTIALS = ['username', 'password', 'sentinelUsername', 'sentinelPassword'];
/** Options by which a client finds its server, and says who it is. How it is connected, and what it makes of requests and replies, is ours. */
const TAKEN = [
  ...CREDENTIALS,
  ...'host port path family tls db keyPrefix connectionName disableClientInfo clientInfoTag protocol Connector natMap'.split(' '),
  ...'sentinels name sentinelTLS enableTLSForSentinelMode sentinelMaxConnections updateSentinels'.split(' '),
];
const TAKEN_OF_CLUSTER = 'redisOptions keyPrefix natMap dnsLookup useSRVRecords resolveSrv'.split(' ');

/**
 * Makes a client of our own to where one of ioredis leads to, which is not used itself. An app may renew the password in the options of its client: it is
 * read there before each connection. The database is the one that the client has selected when the first `Locks` are made.
 *
 * @throws {LockConfigError} if it cannot make a duplicate.
 */
function duplicateOf(lent: RedisClient, requestTimeout: number, databaseOf: () => number): RedisClient {
  const { isCluster } = lent;
  const options = isCluster ? ((lent.options as ClusterOptions).redisOptions ?? {}) : lent.options;
  let client: RedisClient;
  try {
    const ours = { ...withoutOthers(TAKEN, options), ...ownOptions(requestTimeout) };
    const { redisOptions, ...others } = ownClusterOptions(requestTimeout);
    client = isCluster
      ? lent.duplicate([], {
          ...withoutOthers(TAKEN_OF_CLUSTER, lent.options),
          ...others,
          redisOptions: { ...options, ...ours, ...redisOptions },
        })
      : lent.duplicate(ours);
    if (client === lent || !(client as Partial<RedisClient> | undefined)?.options) throw new Error('it gives none');
  } catch (cause) {
    throw configError('STORE', `redisStore: ${NO_DUPLICATE} (${messageOf(cause)}).`, { cause });
  }
  const atFirst = { ...options };
  if (isCluster) {
    client.on('+node', (node) => readAnew((node as RedisClient).options, options, atFirst));
    return client;
  }
  readAnew(client.options, options, atFirst);
  Object.defineProperty(client.options, 'db', { enumerable: true, get: databaseOf });
  // The client of the app decides how long the process lives.
  client.on('connect', () => client.stream?.unref?.());
  return client;
}

/** Reads credentials there whenever they are read here. A node of a Cluster may have some of its own. */
function readAnew(options: object, of: object, atFirst: object): void {
  for (const name of CREDENTIALS) {
    const own: unknown = Reflect.get(options, name);
    if (own === Reflect.get(atFirst, name))
      Object.defineProperty(options, name, { enumerable: true, get: (): unknown => Reflect.get(of, name) });
  }
}

const reconnectDelay = (times: number): number => Math.min(50 * times, LONGEST_RECONNECT_DELAY);

/** A client of our own is usable within a second of the server's return. Single, it repeats nothing by itself, since we do. */
function ownOptions(requestTimeout: number): RedisOptions {
  return {
    lazyConnect: true,
    // ioredis 5 keeps the process alive for as long where a connection is closed while it is made.
    disconnectTimeout: 100,
    autoResendUnfulfilledCommands: false,
    keepAlive: KEEP_ALIVE,
    connectTimeout: requestTimeout,
    // We end a request, and a connection that is silent. After it ioredis 5 would break the next connection, too.
    commandTimeout: undefined,
    socketTimeout: undefined,
    // Without the detector a client stays with a demoted master, and its subscriber receives no message of a release.
    failoverDetector: true,
    sentinelRetryStrategy: reconnectDelay,
    sentinelCommandTimeout: requestTimeout,
    retryStrategy: reconnectDelay,
    // While a server loads its data, our own timeout decides, not its hint.
    maxLoadingRetryTime: 300,
    reconnectOnError: onceDemoted(),
  };
}

function ownClusterOptions(requestTimeout: number): ClusterOptions {
  return {
    lazyConnect: true,
    clusterRetryStrategy: reconnectDelay,
    // A node that hangs is not the only one that knows where the keys are.
    slotsRefreshTimeout: Math.ceil(requestTimeout / 4),
    // What is not served within the time of a request is not asked any longer.
    maxRedirections: Math.max(Math.ceil(requestTimeout / REDIRECTION_DELAY), 3),
    retryDelayOnFailover: REDIRECTION_DELAY,
    retryDelayOnClusterDown: REDIRECTION_DELAY,
    // A script may be answered with fewer keys.
    retryDelayOnTryAgain: REDIRECTION_DELAY / 4,
    // The client of a node connects once, so that the timer of its connection breaks no other one.
    redisOptions: { ...ownOptions(requestTimeout), socketTimeout: requestTimeout },
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
