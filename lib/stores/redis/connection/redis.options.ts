import { inspect } from 'node:util';
import { defined, unknownOption } from '../../../core/model/check-options.js';
import { configError } from '../../../core/model/errors.js';
import { checkClient } from '../../../core/store/check-client.js';
import type { NodeRedisClient } from '../node-redis/node-redis.client.js';
import type { RedisStoreOptions } from '../redis.store.js';

const SOURCES = ['url', 'client', 'options', 'cluster', 'sentinels'] as const;
const NAMES: readonly string[] = [...SOURCES, 'name', 'clusterOptions', 'requestTimeout', 'fenceTimeout', 'replicaAcks'];
/** Options of ioredis, which people write beside ours. */
const OF_CLIENT = [
  'host',
  'port',
  'path',
  'db',
  'username',
  'password',
  'tls',
  'family',
  'keyPrefix',
  'lazyConnect',
  'maxRetriesPerRequest',
];
/** Node and ioredis fire a longer timer at once. */
const LONGEST = 2 ** 31 - 1;

/**
 * Returns what is given: an option that is `undefined` is not.
 *
 * @throws {LockConfigError} when an option is wrong.
 */
export function checkStoreOptions(given: RedisStoreOptions): RedisStoreOptions {
  const fail = (problem: string): never => {
    throw configError('OPTION', `redisStore: ${problem}.`);
  };
  if (typeof given === 'string') fail('the options must be an object: redisStore({ url })');
  if (typeof given !== 'object' || given === null) fail('the options must be an object');
  if ('evalsha' in given || 'evalSha' in given) fail('a client is passed as redisStore({ client })');
  const options = defined(given);
  for (const name of Object.keys(options)) {
    if (OF_CLIENT.includes(name)) fail(`"${name}" is an option of ioredis: write redisStore({ options: { ${name} } })`);
    if (!NAMES.includes(name)) throw unknownOption(name, 'redisStore', NAMES);
  }
  const sources = SOURCES.filter((name) => name in options && !(name === 'options' && 'sentinels' in options));
  if (sources.length !== 1) fail(`give exactly one of ${SOURCES.join(', ')}, not ${sources.join(' and ') || 'none'}`);
  const problem = 'client' in options ? problemOf(options.client) : undefined;
  if (problem !== undefined) fail(problem);
  if ('url' in options && (typeof options.url !== 'string' || options.url.trim() === '')) {
    fail(`"url" must be a URL such as redis://localhost:6379, not ${inspect(options.url)}`);
  }
  if ('url' in options) checkUrl(options.url, fail);
  if ('cluster' in options && !isFilled(options.cluster)) fail('"cluster" must list at least one node');
  if ('sentinels' in options && !isFilled(options.sentinels)) fail('"sentinels" must list at least one sentinel');
  if ('sentinels' in options && typeof options.name !== 'string') fail('"name" must name the master that the sentinels watch');
  for (const [name, least] of [
    ['requestTimeout', 1],
    ['fenceTimeout', 1],
    ['replicaAcks', 0],
  ] as const) {
    const value = options[name];
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= least && value <= LONGEST)) {
      fail(`"${name}" must be a whole number from ${least} to ${LONGEST}, not ${inspect(value)}`);
    }
  }
  return options;
}

/** ioredis would take the scheme of another server for a host, and text for a database for none. @param fail throws. */
function checkUrl(url: string, fail: (problem: string) => never): void {
  const [, scheme] = /^([a-z][a-z\d+.-]*):\/\//i.exec(url) ?? [];
  if (scheme === undefined) return; // a path, or a host
  if (!/^rediss?$/i.test(scheme)) fail(`"url" must begin with redis:// or rediss://, not ${scheme}://`);
  if (!URL.canParse(url)) fail('"url" is none that can be read');
  const { pathname } = new URL(url);
  if (!/^(\/\d*)?$/.test(pathname)) fail(`"url" names the database ${inspect(pathname.slice(1))}: it must be a number`);
}

function isFilled(list: unknown): boolean {
  return Array.isArray(list) && list.length > 0;
}

/** Looks at the methods and not at the class: an app may have another copy of `redis` than this package. */
export function isNodeRedis(value: unknown): value is NodeRedisClient {
  const { sendCommand, evalSha, destroy } = Object(value) as Partial<NodeRedisClient>;
  return [sendCommand, evalSha, destroy].every((method) => typeof method === 'function');
}

/** Explains why this cannot be the client of a store; `undefined`: it can. By themselves, the others learn of a failover late and repeat requests. */
function problemOf(client: unknown): string | undefined {
  const { evalsha, evalSha } = Object(client) as { evalsha?: unknown; evalSha?: unknown };
  if (typeof evalsha === 'function') return undefined;
  const has = (name: string): boolean => typeof client === 'object' && client !== null && name in client;
  if (has('totalClients')) return '"client" is a pool, in which requests overtake each other: pass a client of createClient()';
  if (isNodeRedis(client) && has('nodeClient'))
    return '"client" is a cluster of redis (node-redis): install ioredis and give redisStore({ cluster: [{ host, port }] })';
  if (isNodeRedis(client) && has('getMasterNode'))
    return '"client" is a sentinel of redis (node-redis): install ioredis and give redisStore({ sentinels, name })';
  // One that is not `destroy`ed is of version 4; since 5.1 its connections are counted, and a silent one can end.
  if (typeof evalSha === 'function') checkClient('redisStore', 'redis', isNodeRedis(client) && has('socketEpoch'), true);
  if (isNodeRedis(client)) return undefined;
  return '"client" must be a client of ioredis or redis (node-redis)';
}
