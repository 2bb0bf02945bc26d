import { LockConfigError, type StoreError } from '../../core/model/errors.js';
import { storeErrorOf, type RedisConnection } from './redis.connection.js';

/**
 * A key in the same Cluster slot: with the lock's own hash tag, or the whole of its name as one, which ioredis puts its prefix before.
 *
 * @throws {LockConfigError} if the key itself looks like one of these.
 */
export function keyBeside(key: string, what: 'fence' | 'queue', { client }: RedisConnection): string {
  if (!key.includes('{')) return `{${client.options?.keyPrefix ?? ''}${key}}:${what}`;
  if (/:(fence|queue)$/.test(key)) {
    throw new LockConfigError(`On Redis a key with a hash tag must not end in ":fence" or ":queue": "${key}".`, { key });
  }
  // Two colons: the lock `{a}` is another one than `a`.
  return `${key}::${what}`;
}

/** So the scripts call the kinds of lock, what they are asked for first. */
const OTHER_KIND =
  /WRONGTYPE (mutex|read\/write lock|semaphore|count-down latch): (mutex|read\/write lock|semaphore|count-down latch)( \d+)?$/;

/** What a script's refusal of one key means: one that is used as two kinds of lock is a mistake in the program. */
export function refusalOf(key: string, cause: Error): StoreError | LockConfigError {
  const [, wanted, found] = OTHER_KIND.exec(cause.message) ?? [];
  if (wanted === undefined) return storeErrorOf(cause);
  return new LockConfigError(`"${key}" is in use as a ${found}: it cannot be a ${wanted} at the same time.`, { key, cause });
}
