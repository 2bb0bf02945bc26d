import type { AcquireReply, AcquireRequest, AdoptReply, AdoptRequest, ExtendReply, ExtendRequest } from '../../core/store/lease-driver.js';
import { LeaseRequests, RedisLeaseDriver } from './scripts/lease.requests.js';
import type { RedisConnection } from './connection/redis.connection.js';
import { integerOf, withFenceAndQueue } from './redis.values.js';
import { lua, RedisScript } from './scripts/redis.script.js';
import type { RedisWakeUps } from './waiting/redis.wakeups.js';

/** The mutex on Redis: a plain string, so that it excludes programs that use the classic `SET key value NX PX` recipe, and they exclude it. */
export class RedisMutexDriver extends RedisLeaseDriver {
  private readonly extensions: RedisScript<ExtendReply>;
  private readonly adoptions: RedisScript<ExtendReply>;

  constructor(connection: RedisConnection, acked: RedisConnection, fenceTimeout: number, wakeUps: RedisWakeUps) {
    super(new LeaseRequests(connection, acked, 'mutex', fenceTimeout, wakeUps.entries), wakeUps);
    this.extensions = new RedisScript(acked, lua('mutex/extend', fenceTimeout), withFenceAndQueue, extendReplyOf);
    this.adoptions = new RedisScript(acked, lua('mutex/adopt', fenceTimeout), withFenceAndQueue, extendReplyOf);
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { owner, ttl, tokens, floor = 0, queue, holding, yields = '' } = request;
    const isPlain = tokens === 1 && floor === 0 && !queue && yields === '' && 2 * ttl <= this.requests.fenceTimeout;
    if (isPlain) return this.requests.acquire(request, [owner, ttl]);
    const entry = queue ? this.wakeUps.entryOf(request, holding) : '';
    return this.requests.acquire(request, [owner, [ttl, tokens, floor, yields, entry].join('\n')]);
  }

  /** Tokens are the microseconds of the server's clock, unless that was set back. */
  timeOf(token: number): Date {
    return new Date(token / 1000);
  }

  extend({ key, owner, ttl, tokens }: ExtendRequest): Promise<ExtendReply> {
    return this.extensions.ask(key, [owner, ttl, tokens]);
  }

  adopt({ key, owner, from, ttl, tokens }: AdoptRequest): Promise<AdoptReply> {
    return this.adoptions.ask(key, [owner, from, ttl, tokens]) as Promise<AdoptReply>;
  }
}

function extendReplyOf(reply: unknown): ExtendReply {
  if (reply === null) return 'lost';
  return reply === '' ? 'wanted' : { token: integerOf(reply) };
}
