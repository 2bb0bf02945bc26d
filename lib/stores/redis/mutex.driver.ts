import type { AdoptReply, ExtendReply, LeaseDriver } from '../../core/store/lease-driver.js';
import type { RedisConnection } from './connection/redis.connection.js';
import { integerOf, withFenceAndQueue } from './redis.values.js';
import { LeaseRequests } from './scripts/lease.requests.js';
import { lua, RedisScript } from './scripts/redis.script.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** The mutex on Redis: a plain string, so that it excludes programs that use the classic `SET key value NX PX` recipe, and they exclude it. */
export function mutexDriver(connection: RedisConnection, acked: RedisConnection, fenceTimeout: number, wakeUps: RedisWakeUps): LeaseDriver {
  const requests = new LeaseRequests(connection, acked, 'mutex', fenceTimeout, wakeUps);
  const extensions = new RedisScript(acked, lua('mutex/extend', fenceTimeout), withFenceAndQueue, extendReplyOf);
  const adoptions = new RedisScript(acked, lua('mutex/adopt', fenceTimeout), withFenceAndQueue, extendReplyOf);
  return {
    ...requests.verbs,
    // Tokens are the microseconds of the server's clock, unless that was set back.
    timeOf: (token) => new Date(token / 1000),
    acquire(request) {
      const { owner, ttl, tokens, floor = 0, queue, holding, yields = '' } = request;
      const isPlain = tokens === 1 && floor === 0 && !queue && yields === '' && 2 * ttl <= fenceTimeout;
      if (isPlain) return requests.acquire(request, [owner, ttl]);
      const entry = queue ? wakeUps.entryOf(request, holding) : '';
      return requests.acquire(request, [owner, [ttl, tokens, floor, yields, entry].join('\n')]);
    },
    extend: ({ key, owner, ttl, tokens }) => extensions.ask(key, [owner, ttl, tokens]),
    adopt: ({ key, owner, from, ttl, tokens }) => adoptions.ask(key, [owner, from, ttl, tokens]) as Promise<AdoptReply>,
  };
}

function extendReplyOf(reply: unknown): ExtendReply {
  if (reply === null) return 'lost';
  return reply === '' ? 'wanted' : { token: integerOf(reply) };
}
