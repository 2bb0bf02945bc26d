import type { Redis } from 'ioredis';
import type { RedisServer } from '../../../support/redis-server.js';

const admins = new WeakMap<RedisServer, Redis>();

/** A connection of the controller's own, which no proxy stands before: one to each server. */
export function adminOf(server: RedisServer): Redis {
  let client = admins.get(server);
  if (!client) admins.set(server, (client = server.client()));
  return client;
}
