/**
 * Loaded at once, and only when it is needed: an app that lends a client of `redis` can do without.
 *
 * @param missing is called if it cannot be loaded.
 */
export function ioredis(missing: (cause: unknown) => never): typeof import('ioredis') {
  try {
    return require('ioredis');
  } catch (cause) {
    return missing(cause);
  }
}
