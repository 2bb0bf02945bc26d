import { now } from '../../core/util/clock.js';
import type { AcquireReply, AcquireRequest, CheckReply, ReleaseRequest, RenewRequest } from '../../core/store/lease-driver.js';
import { ownerOf } from '../../core/model/owner.js';
import { scripts } from './lua.scripts.js';
import { RedisBatch } from './redis.batch.js';
import { isForbidden, type RedisConnection } from './redis.connection.js';
import { keyBeside } from './redis.keys.js';
import { integerOf, isYes, listOf, millisecondsOf, textOf, unexpected } from './redis.replies.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

type Argument = string | number;

/** Milliseconds for which the scripts keep a queue that nobody asks for. */
export const PLACE_LIFETIME = 60_000;
/** Locks that are taken or given back in one request: a fraction of a millisecond's work of the server. */
const LARGEST_BATCH = 64;
/** Renewing is cheap. */
const LARGEST_RENEWAL = 256;
const STATES: readonly CheckReply['state'][] = ['held', 'queued', 'taken', 'free'];
const KEEP_FENCES = new RedisScript(scripts.keepFences);

/** The scripts of one set, in Lua. Acquire and release get first whether PUBSUB tells who listens to an inbox; acquire then for how long to keep the fence. */
export type LeaseScripts = Readonly<Record<'acquire' | 'renew' | 'release', string>>;

/**
 * What the drivers of one set of scripts ask of the server. All that is taken or given back within a turn of the event loop goes together, what is
 * given back first: who gives up an acquire of the same turn has taken it out of its batch, and others may want the key.
 */
export class LeaseRequests {
  readonly largestRenewal: number;
  private readonly acquires: RedisBatch;
  private readonly releases: RedisBatch;
  private readonly renewing: RedisScript;
  private isFlushing = false;

  constructor(
    readonly connection: RedisConnection,
    sources: LeaseScripts,
    private readonly fenceTimeout: number,
    private readonly wakeUps: RedisWakeUps,
  ) {
    const { isCluster } = connection.client;
    // Two keys of a Cluster seldom share a slot.
    const largest = isCluster ? 1 : LARGEST_BATCH;
    this.largestRenewal = isCluster ? 1 : LARGEST_RENEWAL;
    // On Cluster a node knows only who listens at itself.
    const countsReceivers = isCluster ? '0' : '1';
    this.acquires = new RedisBatch(connection, new RedisScript(sources.acquire), [countsReceivers, fenceTimeout], largest);
    this.releases = new RedisBatch(connection, new RedisScript(sources.release), [countsReceivers], largest);
    this.renewing = new RedisScript(sources.renew);
  }

  /** @param args those of the script, behind the owner. A request that yields is sent now, with what was to go at the end of the turn: others wait for it. */
  async acquire({ key, owner, yields }: AcquireRequest, args: readonly Argument[]): Promise<AcquireReply> {
    const left = this.wakeUps.places.refusedPlaceOf(owner);
    if (left !== undefined) {
      // One after the other: a script that the server does not know is sent again, and the release would take back what the acquire has got.
      await this.sendRelease(key, [owner, 0, left]);
      this.wakeUps.places.hasLeft(owner);
    }
    this.flushSoon();
    const keys = [key, this.beside(key, 'fence'), this.beside(key, 'queue')];
    const decode = yields === undefined ? acquireReplyOf : yieldReplyOf;
    const replied = this.acquires.add(keys, [owner, ...args], decode);
    if (yields !== undefined) {
      this.wakeUps.places.released(yields);
      this.flush();
    }
    const reply = await replied;
    if (reply.granted) this.wakeUps.places.granted(owner);
    return reply;
  }

  /** @param place in the queue, to leave too; '': none. */
  async release({ key, owner, keepFor }: ReleaseRequest, place: string): Promise<'released' | 'lost'> {
    this.wakeUps.places.released(owner);
    try {
      return await this.sendRelease(key, [owner, keepFor, place]);
    } finally {
      // Of an acquire before this the reply may have come meanwhile.
      this.wakeUps.places.released(owner);
    }
  }

  renew(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    this.keepFences(batch);
    const { largestRenewal } = this;
    if (batch.length <= largestRenewal) return this.renewTogether(batch);
    const parts: Promise<'renewed' | 'lost'>[] = [];
    for (let start = 0; start < batch.length; start += largestRenewal)
      parts.push(...this.renewTogether(batch.slice(start, start + largestRenewal)));
    return parts;
  }

  ask(script: RedisScript, keyCount: number, keysAndArgs: readonly Argument[]): Promise<unknown> {
    return script.run(this.connection, keyCount, keysAndArgs);
  }

  /** @throws {LockConfigError} if the key itself looks like one of these. */
  beside(key: string, what: 'fence' | 'queue'): string {
    return keyBeside(key, what, this.connection);
  }

  private sendRelease(key: string, args: readonly Argument[]): Promise<'released' | 'lost'> {
    this.flushSoon();
    return this.releases.add([key, this.beside(key, 'queue')], args, (reply) => (isYes(reply) ? 'released' : 'lost'));
  }

  private renewTogether(batch: readonly RenewRequest[]): readonly Promise<'renewed' | 'lost'>[] {
    const keysAndArgs = [...batch.map(({ key }) => key), ...batch.flatMap(({ owner, ttl }) => [owner, ttl])];
    const replies = this.ask(this.renewing, batch.length, keysAndArgs).then((reply) => listOf(reply, batch.length));
    return batch.map(async (one, index) => {
      try {
        return isYes((await replies)[index]) ? 'renewed' : 'lost';
      } catch (error) {
        // The others must not suffer from a key that the user may not use.
        if (batch.length === 1 || !isForbidden(error)) throw error;
        return this.renewTogether([one])[0] as Promise<'renewed' | 'lost'>;
      }
    });
  }

  /**
   * A fence that ran out under a lease would be forgotten with its last token. Each lease is renewed several times within its length: three times in
   * the life of a fence is one of these times chosen to keep the fence too.
   */
  private keepFences(batch: readonly RenewRequest[]): void {
    const time = now();
    const period = this.fenceTimeout / 3;
    const due = batch.filter(({ ttl }) => Math.floor(time / period) !== Math.floor((time - ttl) / period));
    if (due.length === 0) return;
    this.keepTogether(due).catch((error: unknown) => {
      // Without an answer, a later renewal does it.
      if (due.length > 1 && isForbidden(error)) for (const one of due) this.keepTogether([one]).catch(() => undefined);
    });
  }

  private keepTogether(due: readonly RenewRequest[]): Promise<unknown> {
    const keysAndArgs = [...due.map(({ key }) => this.beside(key, 'fence')), ...due.map(({ ttl }) => Math.max(this.fenceTimeout, 2 * ttl))];
    return this.ask(KEEP_FENCES, due.length, keysAndArgs);
  }

  private flushSoon(): void {
    if (this.isFlushing) return;
    this.isFlushing = true;
    process.nextTick(() => {
      this.isFlushing = false;
      this.flush();
    });
  }

  private flush(): void {
    this.releases.flush();
    this.acquires.flush();
  }
}

export function holderOf(reply: unknown): string | null {
  return ownerOf(textOf(reply));
}

export function stateOf(reply: unknown): CheckReply['state'] {
  const state = STATES.find((one) => one === reply);
  if (!state) throw unexpected(reply);
  return state;
}

function acquireReplyOf(reply: unknown): AcquireReply {
  if (typeof reply === 'string') return { granted: true, token: integerOf(reply) };
  const [remaining, holder, ahead] = listOf(reply, 3);
  return { granted: false, remaining: millisecondsOf(remaining), holder: holderOf(holder), ahead: integerOf(ahead) };
}

function yieldReplyOf(reply: unknown): AcquireReply {
  const [wasHeld, outcome] = listOf(reply, 2);
  return { ...acquireReplyOf(outcome), yielded: isYes(wasHeld) ? 'released' : 'lost' };
}

/** Tokens are the microseconds of the server's clock, unless that was set back. */
export function timeOf(token: number): Date {
  return new Date(token / 1000);
}
