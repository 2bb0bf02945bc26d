// eslint-disable-next-line @typescript-eslint/ban-ts-comment -- it must also hold where there is no error
/** @ts-ignore -- without ioredis its options have no type */
import type { ClusterNode, ClusterOptions, RedisOptions } from 'ioredis';
import { type Check, checkOneOf, checkOptions, defined, integerFrom, ofType, urlWith } from '../../../core/model/check-options.js';
import { configError } from '../../../core/model/errors.js';
import { checkClient } from '../../../core/store/check-client.js';
import type { RedisClient } from './redis.client.js';

/** A client of the package `redis`, version 5 or 6: what `createClient` returns. */
export interface NodeRedisClient {
  connect(): Promise<unknown>;
  sendCommand(...args: never[]): Promise<unknown>;
  evalSha(...args: never[]): Promise<unknown>;
  destroy(): unknown;
}

/** Where the server is; exactly one of these. */
export type RedisConnectionOptions =
  | {
      /** `redis://` or `rediss://`. */
      url: string;
    }
  | {
      /**
       * A client of your own, of ioredis (single, Sentinel or Cluster), or for one server of `redis` (node-redis, version 5 or 6). It is not used itself:
       * the store has connections of its own to where it leads to, as the same user, in the same database, with the same `keyPrefix`. What else is set for
       * it does not count. An app that calls `select()` of node-redis gives `database` in its options as well: the call cannot be seen.
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

const SOURCES = ['url', 'client', 'options', 'cluster', 'sentinels'];
/** Options of ioredis, which people write beside ours. */
const OF_CLIENT = 'host port path db username password tls family keyPrefix lazyConnect maxRetriesPerRequest'.split(' ');
/** Node and ioredis fire a longer timer at once. */
const LONGEST = 2 ** 31 - 1;
const ANY: Check = () => undefined;
const listOf = (what: string): Check => {
  return (value) => (Array.isArray(value) && value.length > 0 ? undefined : `a list of at least one ${what}`);
};
const CHECKS = {
  // ioredis would take text for a database for none.
  url: urlWith(/^(\/(?!\/)|rediss?:\/\/[^/?]*(\/\d*)?(\?|$))/i, 'redis://localhost:6379/0', /^rediss:|[?&]tls=/i, 'rediss://'),
  ...{ client: ANY, options: ANY, cluster: listOf('node'), clusterOptions: ANY, sentinels: listOf('sentinel'), name: ofType('string') },
  requestTimeout: integerFrom(1, LONGEST),
  fenceTimeout: integerFrom(1, LONGEST),
  replicaAcks: integerFrom(0, LONGEST),
};

/**
 * Returns what is given: an option that is `undefined` is not.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function checkStoreOptions(given: RedisStoreOptions): RedisStoreOptions {
  const fail = (problem: string): never => {
    throw configError('OPTION', `redisStore: ${problem}.`);
  };
  if (typeof given !== 'object' || given === null) fail('the options must be an object: redisStore({ url })');
  if ('evalsha' in given || 'evalSha' in given) fail('a client is passed as redisStore({ client })');
  const options = defined(given);
  const ofClient = Object.keys(options).find((name) => OF_CLIENT.includes(name));
  if (ofClient) fail(`"${ofClient}" is an option of ioredis: write redisStore({ options: { ${ofClient} } })`);
  checkOptions(options, 'redisStore', CHECKS);
  checkOneOf(given, 'redisStore', 'sentinels' in options ? SOURCES.filter((name) => name !== 'options') : SOURCES);
  const problem = 'client' in options ? problemOf(options.client) : undefined;
  if (problem !== undefined) fail(problem);
  if ('sentinels' in options && !options.name) fail('"name" must name the master that the sentinels watch');
  return options;
}

/** Looks at the methods and not at the class: an app may have another copy of `redis` than this package. */
export function isNodeRedis(value: unknown): value is NodeRedisClient {
  const { sendCommand, evalSha, destroy } = Object(value) as Partial<NodeRedisClient>;
  return [sendCommand, evalSha, destroy].every((method) => typeof method === 'function');
}

export const NO_DUPLICATE =
  '"client" cannot make a duplicate of itself: pass the client that it was made from, or where the server is, as redisStore({ url })';

/** Explains why this cannot be the client of a store; `undefined`: it can. */
function problemOf(client: unknown): string | undefined {
  const { evalsha, evalSha, duplicate, options } = Object(client) as Record<string, unknown>;
  const duplicates = typeof duplicate === 'function' ? undefined : NO_DUPLICATE;
  if (typeof evalsha === 'function') return typeof options === 'object' ? duplicates : NO_DUPLICATE;
  const has = (name: string): boolean => typeof client === 'object' && client !== null && name in client;
  if (has('totalClients')) return '"client" is a pool, in which requests overtake each other: pass a client of createClient()';
  if (isNodeRedis(client) && has('nodeClient'))
    return '"client" is a cluster of redis (node-redis): install ioredis and give redisStore({ cluster: [{ host, port }] })';
  if (isNodeRedis(client) && has('getMasterNode'))
    return '"client" is a sentinel of redis (node-redis): install ioredis and give redisStore({ sentinels, name })';
  // One that is not `destroy`ed is of version 4; since 5.1 its connections are counted, and a silent one can end.
  if (typeof evalSha === 'function') checkClient('redisStore', 'redis', isNodeRedis(client) && has('socketEpoch'));
  if (isNodeRedis(client)) return duplicates;
  return '"client" must be a client of ioredis or redis (node-redis)';
}
