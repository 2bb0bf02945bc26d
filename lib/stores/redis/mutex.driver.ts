import type { AcquireReply, AcquireRequest, CheckReply, LeaseDriver, ReleaseRequest, RenewRequest, Tenancy } from '../../core/driver.js';
import { LockConfigError } from '../../core/errors.js';
import { lua } from './lua.generated.js';
import { storeErrorOf, type RedisConnection } from './redis.connection.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

type AcquireScriptReply = string | [remaining: number, holder: string, ahead: number] | Error;

const ACQUIRE = new RedisScript<AcquireScriptReply[]>(lua['mutex/acquire']);
const RENEW = new RedisScript<(0 | 1)[]>(lua['mutex/renew']);
const RELEASE = new RedisScript<(0 | 1 | Error)[]>(lua['mutex/release']);
const CHECK = new RedisScript<[CheckReply['state'], number]>(lua['mutex/check']);

/** Milliseconds that a waiter has to take the lock that it is offered. */
const OFFER = 1000;

/** The mutex on Redis: a plain string, so that whoever uses the classic `SET key value NX PX` recipe and we exclude each other. */
export class RedisMutexDriver implements LeaseDriver {
  readonly largestBatch: number;
  /** The places of this process's waiters in their queues, by owner. */
  private readonly places = new Map<string, string>();
  /** Whether PUBLISH tells how many heard it: on Cluster just those who listen at the same node. */
  private readonly countsReceivers: '0' | '1';

  constructor(
    private readonly connection: RedisConnection,
    private readonly fenceTimeout: number,
    readonly wakeUps: RedisWakeUps | undefined,
  ) {
    // Two keys of a Cluster seldom share a slot.
    this.largestBatch = connection.client.isCluster ? 1 : 256;
    this.countsReceivers = connection.client.isCluster ? '0' : '1';
  }

  async acquire(request: AcquireRequest): Promise<AcquireReply> {
    const { key, owner, ttl, tokens, yields = '' } = request;
    const keys = [key, this.beside(key, 'fence'), this.beside(key, 'queue')];
    const place = request.queue ? this.placeOf(request) : '';
    const args = [this.fenceTimeout, this.countsReceivers, owner, ttl, tokens, place, yields];
    const [reply] = await ACQUIRE.run(this.connection, keys, args, () => request.abandoned());
    if (typeof reply === 'string') {
      this.places.delete(owner);
      return { granted: true, token: Number(reply) };
    }
    if (reply instanceof Error || !reply) throw storeErrorOf(reply);
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
    return (await this.giveBack(key, owner, keepFor, '')) === 1 ? 'released' : 'lost';
  }

  async leave({ key, owner }: Tenancy): Promise<void> {
    await this.giveBack(key, owner, 0, this.places.get(owner) ?? '');
    this.places.delete(owner);
  }

  async check({ key, owner }: Tenancy): Promise<CheckReply> {
    const args = [owner, this.places.get(owner) ?? ''];
    const [state, remaining] = await CHECK.run(this.connection, [key, this.beside(key, 'queue')], args);
    return { state, remaining: Number(remaining) };
  }

  private async giveBack(key: string, owner: string, keepFor: number, place: string): Promise<number> {
    const args = [this.countsReceivers, owner, keepFor, place];
    const [reply] = await RELEASE.run(this.connection, [key, this.beside(key, 'queue')], args);
    if (reply instanceof Error) throw storeErrorOf(reply);
    return Number(reply);
  }

  /** The same for one owner whenever it asks, since the queue knows it by the whole of it. */
  private placeOf({ owner, ttl, holding = [] }: AcquireRequest): string {
    let place = this.places.get(owner);
    if (place === undefined) {
      const inbox = this.wakeUps?.isOpen ? this.wakeUps.inbox : '';
      place = [owner, inbox, Math.min(ttl, OFFER), ...holding].join('\n');
      this.places.set(owner, place);
    }
    return place;
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
