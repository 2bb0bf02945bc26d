/**
 * Loads ioredis. An app that passes a client of `redis` can do without.
 *
 * @param missing is called if it is not installed.
 */
export function ioredis(missing: (cause: unknown) => never): typeof import('ioredis');

/** Loads what only a store needs that is given a client of `redis`. */
export function nodeRedisAdapter(): typeof import('./node-redis/node-redis.adapter.js', { with: { 'resolution-mode': 'import' } });
