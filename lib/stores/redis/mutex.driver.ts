import type { AcquireReply, AcquireRequest, CheckReply, LeaseDriver, ReleaseRequest, RenewRequest, Tenancy } from '../../core/driver.js';
import { LockConfigError } from '../../core/errors.js';
import { lua } from './lua.generated.js';
import { RedisBatch } from './redis.batch.js';
import type { RedisConnection } from './redis.connection.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

type AcquireScriptReply = string | [remaining: number, holder: string, ahead: number];

const ACQUIRE = new RedisScript<(AcquireScriptReply | Error)[]>(lua['mutex/acquire']);
const RENEW = new RedisScript<(0 | 1)[]>(lua['mutex/renew']);
const RELEASE = new RedisScript<(0 | 1 | Error)[]>(lua['mutex/release']);
const CHECK = new RedisScript<[CheckReply['state'], number]>(lua['mutex/check']);

/** Locks that are taken or given back in one request: a fraction of a millisecond's work of the server. */
const LARGEST_BATCH = 64;

/** The mutex on Redis: a plain string, so that whoever uses the classic `SET key value NX PX` recipe and we exclude each other. */
export class RedisMutexDriver implements LeaseDriver {
  readonly largestBatch: number;
  private readonly acquires: RedisBatch<AcquireScriptReply>;
  private readonly releases: RedisBatch<0 | 1>;
  private isFlushing = false;

  constructor(
    private readonly connection: RedisConnection,
    fenceTimeout: number,
    readonly wakeUps: RedisWakeUps,
  ) {
    const { isCluster } = connection.client;
    // Two keys of a Cluster seldom share a slot.
    this.largestBatch = isCluster ? 1 : 256;
    const largest = isCluster ? 1 : LARGEST_BATCH;
    // Whether PUBLISH tells how many heard it: on Cluster just those who listen at the same node.
    const countsReceivers = isCluster ? '0' : '1';
    this.acquires = new RedisBatch(connection, ACQUIRE, [fenceTimeout, countsReceivers], largest);
    this.releases = new RedisBatch(connection, RELEASE, [countsReceivers], largest);
  }

  acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, owner, ttl, tokens, yields = '' } = request;
    const keys = [key, this.beside(key, 'fence'), this.beside(key, 'queue')];
    const args = [owner, ttl, tokens, request.queue ? this.wakeUps.placeOf(owner, ttl, request.holding ?? []) : '', yields];
    this.flushSoon();
    return this.acquires.add(keys, args, decode, request.abandoned);
  }

  async renew(batch: readonly RenewRequest[]): Promise<readonly ('renewed' | 'lost')[]> {
    const keysAndArgs = [...batch.map(({ key }) => key), ...batch.flatMap(({ owner, ttl }) => [owner, ttl])];
    const replies = await RENEW.run(
      this.connection,
      () => batch.length,
      () => keysAndArgs,
    );
    return replies.map((reply) => (Number(reply) === 1 ? 'renewed' : 'lost'));
  }

  release({ key, owner, keepFor }: ReleaseRequest): Promise<'released' | 'lost'> {
    return this.giveBack(key, owner, keepFor, '');
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.giveBack(key, owner, 0, this.wakeUps.knownPlaceOf(owner));
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const keysAndArgs = [key, this.beside(key, 'queue'), owner, this.wakeUps.knownPlaceOf(owner)];
    const [state, remaining] = await CHECK.run(
      this.connection,
      () => 2,
      () => keysAndArgs,
    );
    return { state, remaining: Number(remaining) };
  }

  private giveBack(key: string, owner: string, keepFor: number, place: string): Promise<'released' | 'lost'> {
    const keys = [key, this.beside(key, 'queue')];
    this.flushSoon();
    return this.releases.add(keys, [owner, keepFor, place], (reply) => (Number(reply) === 1 ? 'released' : 'lost'));
  }

  /** What is given back goes first: who gives up an acquire of the same turn has taken it out of its batch, and others may want the key. */
  private flushSoon(): void {
    if (this.isFlushing) return;
    this.isFlushing = true;
    process.nextTick(() => {
      this.isFlushing = false;
      this.releases.flush();
      this.acquires.flush();
    });
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

function decode(reply: AcquireScriptReply): AcquireReply {
  if (typeof reply === 'string') return { granted: true, token: Number(reply) };
  const [remaining, holder, ahead] = reply;
  return { granted: false, remaining: Number(remaining), holder, ahead: Number(ahead) };
}
