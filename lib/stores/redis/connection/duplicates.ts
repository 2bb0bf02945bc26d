// eslint-disable-next-line @typescript-eslint/ban-ts-comment -- it must also hold where there is no error
/** @ts-ignore -- without ioredis its options have no type */
import type { ClusterOptions } from 'ioredis';
import { messageOf, StoreError } from '../../../core/model/errors.js';
import { idle, inTime, now } from '../../../core/util/clock.js';
import { detached } from '../../../core/util/detached.js';
import { ownClusterOptions, ownOptions } from './own.client.js';
import { disconnect, nodeOf, type RedisClient } from './redis.client.js';
import type { RedisConnection } from './redis.connection.js';
import { isOfSelect, silent, TELL_DATABASE } from './redis.errors.js';
import type { RedisRequest } from './redis.request.js';

/**
 * Makes a client of our own to what this one leads to.
 *
 * @param db the database of the client, unless it is of a Cluster: an app may have chosen another one than its options say.
 */
function duplicateOf(client: RedisClient, requestTimeout: number, db: number | undefined): RedisClient {
  try {
    if (!client.isCluster) return client.duplicate({ ...ownOptions(requestTimeout), db });
    const { redisOptions } = client.options as ClusterOptions;
    const ours = ownClusterOptions(requestTimeout);
    return client.duplicate([], { ...ours, redisOptions: { ...redisOptions, ...ours.redisOptions } });
  } catch (cause) {
    // An app may have wrapped it.
    throw new StoreError(`Redis: the client cannot make a duplicate: ${messageOf(cause)}`, { transient: false, isUnsent: true, cause });
  }
}

/** Makes a duplicate of a lent client, in the same database. @throws {StoreError} if neither the client nor the server says which one that is. */
export async function duplicateBeside(connection: RedisConnection): Promise<RedisClient> {
  // Behind the question that the first request over a connection brings with it.
  await connection.request((client) => client.call('TIME'));
  const { client, requestTimeout, facts } = connection;
  if (facts.database !== undefined) return duplicateOf(client, requestTimeout, facts.database);
  throw new StoreError(`Redis: the database of the client is not known: ${TELL_DATABASE}.`, { transient: false, isRefusal: true });
}

/**
 * Makes a duplicate of a lent client that is silent, if the server answers over that alone, and the database of the client is known. It is decided once
 * for a connection, and a warning says how.
 *
 * @param request has got no answer: on a Cluster its node is asked.
 * @param since when the client is silent.
 */
export async function duplicateOfSilent(
  connection: RedisConnection,
  request: RedisRequest,
  since: number,
): Promise<RedisClient | undefined> {
  const { client, facts } = connection;
  if (facts.isDecided) return undefined;
  facts.isDecided = true;
  const isSilent = (): boolean => connection.facts === facts && facts.silentSince(nodeOf(request)) === since;
  const duplicate = await answeringDuplicate(connection, request.key, isSilent);
  facts.isDecided = duplicate !== undefined;
  if (!duplicate) return undefined;
  const isKnown = client.isCluster === true || facts.database !== undefined;
  connection.warnings.warn(silent(now() - since, isKnown), 'NDL_CLIENT_SILENT');
  if (isKnown) return duplicate;
  disconnect(duplicate);
  return undefined;
}

/**
 * Asks the server over a duplicate, and after that once more over the client, which may have been silent because the server was away. Resolves after a
 * `requestTimeout` for its answer; to `undefined` if there is one, or none over the duplicate.
 */
async function answeringDuplicate(
  connection: RedisConnection,
  key: string | undefined,
  isSilent: () => boolean,
): Promise<RedisClient | undefined> {
  const { client, requestTimeout, facts } = connection;
  let duplicate: RedisClient | undefined;
  // ioredis would go on in database 0.
  let isAstray = false;
  const ask = (one: RedisClient): Promise<unknown> => (one.isCluster && key !== undefined ? one.call('EXISTS', key) : one.call('TIME'));
  const reach = async (one: RedisClient): Promise<void> => {
    await one.connect();
    await ask(one);
  };
  try {
    const made = (duplicate = duplicateOf(client, requestTimeout, facts.database));
    made.on('error', (cause) => (isAstray ||= isOfSelect(cause)));
    await inTime(
      requestTimeout,
      detached(() => reach(made)),
      () => new Error('The duplicate is not answered.'),
    );
    await Promise.all([connection.request(ask, key).catch(() => undefined), idle(requestTimeout)]);
    if (isSilent() && !isAstray) return duplicate;
  } catch {
    // The server is away, or there is no duplicate.
  }
  if (duplicate) disconnect(duplicate);
  return undefined;
}
