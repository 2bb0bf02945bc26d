import type { Redis } from 'ioredis';
import type { RedisServer } from '../../../support/redis-server.js';

/** Connections of the controller's own, which no proxy stands before: one to each server. */
export class Admins {
  private readonly clients = new Map<RedisServer, Redis>();

  of(server: RedisServer): Redis {
    let client = this.clients.get(server);
    if (!client) this.clients.set(server, (client = server.client()));
    return client;
  }
}
