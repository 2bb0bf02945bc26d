import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  ExtendReply,
  ExtendRequest,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
} from '../../core/store/lease-driver.js';
import { holderOf, LeaseRequests, PLACE_LIFETIME, stateOf, timeOf } from './lease.requests.js';
import { scripts } from './lua.scripts.js';
import type { RedisConnection } from './redis.connection.js';
import { integerOf, listOf, millisecondsOf } from './redis.replies.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

const EXTEND = new RedisScript(scripts.mutex.extend);
const CHECK = new RedisScript(scripts.mutex.check);

/** The mutex on Redis: a plain string, so that whoever uses the classic `SET key value NX PX` recipe and we exclude each other. */
export class RedisMutexDriver implements LeaseDriver {
  readonly placeLifetime = PLACE_LIFETIME;
  private readonly requests: LeaseRequests;

  constructor(
    connection: RedisConnection,
    private readonly fenceTimeout: number,
    readonly wakeUps: RedisWakeUps,
  ) {
    this.requests = new LeaseRequests(connection, scripts.mutex, fenceTimeout, wakeUps);
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { owner, ttl, tokens, queue, holding = [], yields = '' } = request;
    const place = queue ? this.wakeUps.placeOf(owner, ttl, holding) : '';
    return this.requests.acquire(request, [ttl, tokens, place, yields]);
  }

  timeOf(token: number): Date {
    return timeOf(token);
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    return this.requests.renew(batch);
  }

  async extend({ key, owner, ttl, tokens }: ExtendRequest): Promise<ExtendReply> {
    const { requests, fenceTimeout } = this;
    const keys = [key, requests.beside(key, 'fence'), requests.beside(key, 'queue')];
    const reply = await requests.ask(EXTEND, 3, [...keys, owner, ttl, tokens, fenceTimeout]);
    if (reply === null) return 'lost';
    return reply === '' ? 'wanted' : { token: integerOf(reply) };
  }

  async release(request: ReleaseRequest): Promise<'released' | 'lost'> {
    return this.requests.release(request, '');
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.requests.release({ key, owner, keepFor: 0 }, this.wakeUps.places.knownPlaceOf(owner));
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const { requests } = this;
    const keys = [key, requests.beside(key, 'queue'), requests.beside(key, 'fence')];
    const reply = await requests.ask(CHECK, 3, [...keys, owner, this.wakeUps.places.knownPlaceOf(owner)]);
    const [state, remaining, holder = '', token = ''] = listOf(reply);
    return {
      state: stateOf(state),
      remaining: millisecondsOf(remaining),
      holder: holderOf(holder),
      token: token === '' ? null : integerOf(token),
    };
  }
}
