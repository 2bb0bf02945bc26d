import type { AcquireReply, AcquireRequest, CheckReply, LeaseDriver, ReleaseRequest, RenewRequest, Tenancy } from '../../core/driver.js';
import { LockConfigError } from '../../core/errors.js';
import { lua } from './lua.generated.js';
import type { RedisConnection } from './redis.connection.js';
import { RedisScript } from './redis.script.js';

type AcquireScriptReply = string | [remaining: number, holder: string, ahead: number];

const ACQUIRE = new RedisScript<AcquireScriptReply>(lua['mutex/acquire']);
const RENEW = new RedisScript<(0 | 1)[]>(lua['mutex/renew']);
const RELEASE = new RedisScript<0 | 1>(lua['mutex/release']);
const LEAVE = new RedisScript<0 | 1>(lua['mutex/leave']);
const CHECK = new RedisScript<[CheckReply['state'], number]>(lua['mutex/check']);

/** The mutex on Redis: a plain string, so that whoever uses the classic `SET key value NX PX` recipe and we exclude each other. */
export class RedisMutexDriver implements LeaseDriver {
  readonly largestBatch: number;

  constructor(
    private readonly connection: RedisConnection,
    private readonly fenceTimeout: number,
  ) {
    // Two keys of a Cluster seldom share a slot.
    this.largestBatch = connection.client.isCluster ? 1 : 256;
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, owner, ttl, tokens, queue } = request;
    const args = [owner, ttl, this.fenceTimeout];
    if (queue || tokens > 1) args.push(tokens, queue ? 1 : 0);
    const reply = await ACQUIRE.run(this.connection, [key, this.beside(key, 'fence'), this.beside(key, 'queue')], args, () =>
      request.abandoned(),
    );
    if (typeof reply === 'string') return { granted: true, token: Number(reply) };
    const [remaining, holder, ahead] = reply;
    return { granted: false, remaining: Number(remaining), holder, ahead: Number(ahead) };
  }

  async renew(batch: readonly RenewRequest[]): Promise<readonly ('renewed' | 'lost')[]> {
    const keys = batch.map(({ key }) => key);
    const args = batch.flatMap(({ owner, ttl }) => [owner, ttl]);
    const replies = await RENEW.run(this.connection, keys, args);
    return replies.map((reply) => (Number(reply) === 1 ? 'renewed' : 'lost'));
  }

  async release({ key, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    const reply = await RELEASE.run(this.connection, [key, this.beside(key, 'queue')], keepFor > 0 ? [owner, keepFor] : [owner]);
    return Number(reply) === 1 ? 'released' : 'lost';
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await LEAVE.run(this.connection, [key, this.beside(key, 'queue')], [owner]);
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const [state, remaining] = await CHECK.run(this.connection, [key, this.beside(key, 'queue')], [owner]);
    return { state, remaining: Number(remaining) };
  }

  /** A key in the same Cluster slot: with the lock's own hash tag, or the whole of its name as one, which ioredis puts its prefix before. */
  private beside(key: string, what: 'fence' | 'queue'): string {
    if (!key.includes('{')) return `{${this.connection.client.options?.keyPrefix ?? ''}${key}}:${what}`;
    if (/:(fence|queue)$/.test(key)) {
      throw new LockConfigError(`On Redis a key with a hash tag must not end in ":fence" or ":queue": "${key}".`, { key });
    }
    // Two colons: the lock `{a}` is another one than `a`.
    return `${key}::${what}`;
  }
}
