/** Imported before anything else: the stores of this file are over node-redis. */
process.env.REDIS_CLIENT ??= 'node-redis';
