/**
 * Loads ioredis. An app that lends a client of `redis` can do without.
 *
 * @param missing is called if it cannot be loaded.
 */
export function ioredis(missing: (cause: unknown) => never): typeof import('ioredis');
