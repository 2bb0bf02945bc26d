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
} from '../../core/driver.js';
import { LeaseRequests } from './lease.requests.js';
import { lua } from './lua.generated.js';
import type { RedisConnection } from './redis.connection.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

const SCRIPTS = { acquire: lua['mutex/acquire'], renew: lua['mutex/renew'], release: lua['mutex/release'] };
const EXTEND = new RedisScript<string | null>(lua['mutex/extend']);
const CHECK = new RedisScript<[state: CheckReply['state'], remaining: number, holder?: string, token?: string]>(lua['mutex/check']);

/** The mutex on Redis: a plain string, so that whoever uses the classic `SET key value NX PX` recipe and we exclude each other. */
export class RedisMutexDriver implements LeaseDriver {
  readonly largestBatch: number;
  private readonly requests: LeaseRequests;

  constructor(
    connection: RedisConnection,
    private readonly fenceTimeout: number,
    readonly wakeUps: RedisWakeUps,
  ) {
    this.requests = new LeaseRequests(connection, SCRIPTS, fenceTimeout, wakeUps);
    this.largestBatch = this.requests.largestRenewal;
  }

  acquire({ key, owner, ttl, tokens, queue, holding = [], yields = '', isReady, abandoned }: AcquireRequest): Promise<AcquireReply> {
    const place = queue ? this.wakeUps.placeOf(owner, ttl, holding, isReady ? tokens : 0) : '';
    return this.requests.acquire(key, [owner, ttl, tokens, place, yields], abandoned, yields !== '');
  }

  renew(batch: readonly RenewRequest[]): Promise<readonly ('renewed' | 'lost')[]> {
    return this.requests.renew(batch);
  }

  async extend({ key, owner, ttl, tokens }: ExtendRequest): Promise<ExtendReply> {
    const { requests, fenceTimeout } = this;
    const keys = [key, requests.beside(key, 'fence'), requests.beside(key, 'queue')];
    const reply = await requests.ask(EXTEND, 3, [...keys, owner, ttl, tokens, fenceTimeout]);
    if (reply === null) return 'lost';
    return reply === '' ? 'wanted' : { token: Number(reply) };
  }

  release({ key, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    return this.requests.release(key, [owner, keepFor, '']);
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.requests.release(key, [owner, 0, this.wakeUps.knownPlaceOf(owner)]);
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const { requests } = this;
    const keys = [key, requests.beside(key, 'queue'), requests.beside(key, 'fence')];
    const [state, remaining, holder = null, token = ''] = await requests.ask(CHECK, 3, [...keys, owner, this.wakeUps.knownPlaceOf(owner)]);
    return { state, remaining: Number(remaining), holder, token: token === '' ? null : Number(token) };
  }
}
