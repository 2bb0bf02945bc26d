import type { AcquireReply, RenewRequest } from '../../core/driver.js';
import { RedisBatch } from './redis.batch.js';
import type { RedisConnection } from './redis.connection.js';
import { keyBeside } from './redis.keys.js';
import { RedisScript } from './redis.script.js';
import type { RedisWakeUps } from './redis.wakeups.js';

type Argument = string | number;
type AcquireScriptReply = string | [remaining: number, holder: string, ahead: number];

/** Locks that are taken or given back in one request: a fraction of a millisecond's work of the server. */
const LARGEST_BATCH = 64;
/** Renewing is cheap. */
const LARGEST_RENEWAL = 256;

/** The scripts of one set, in Lua. Acquire and release get first whether PUBLISH tells how many heard it; acquire then for how long to keep the fence. */
export type LeaseScripts = Readonly<Record<'acquire' | 'renew' | 'release', string>>;

/**
 * What the drivers of one set of scripts ask of the server. All that is taken or given back within a turn of the event loop goes together, what is
 * given back first: who gives up an acquire of the same turn has taken it out of its batch, and others may want the key.
 */
export class LeaseRequests {
  readonly largestRenewal: number;
  private readonly acquires: RedisBatch<AcquireScriptReply>;
  private readonly releases: RedisBatch<0 | 1>;
  private readonly renewing: RedisScript<(0 | 1)[]>;
  private isFlushing = false;

  constructor(
    readonly connection: RedisConnection,
    scripts: LeaseScripts,
    fenceTimeout: number,
    private readonly wakeUps: RedisWakeUps,
  ) {
    const { isCluster } = connection.client;
    // Two keys of a Cluster seldom share a slot.
    const largest = isCluster ? 1 : LARGEST_BATCH;
    this.largestRenewal = isCluster ? 1 : LARGEST_RENEWAL;
    // On Cluster PUBLISH counts just those who listen at the same node.
    const countsReceivers = isCluster ? '0' : '1';
    this.acquires = new RedisBatch(connection, new RedisScript(scripts.acquire), [countsReceivers, fenceTimeout], largest);
    this.releases = new RedisBatch(connection, new RedisScript(scripts.release), [countsReceivers], largest);
    this.renewing = new RedisScript(scripts.renew);
  }

  /** @param isUrgent whether others wait for it: it is sent now, with what was to go at the end of the turn. */
  acquire(key: string, args: readonly [owner: string, ...Argument[]], abandoned: () => boolean, isUrgent = false): Promise<AcquireReply> {
    const [owner] = args;
    const left = this.wakeUps.refusedPlaceOf(owner);
    if (left !== undefined) {
      // One after the other: a script that the server does not know is sent again, and the release would take back what the acquire has got.
      return this.release(key, [owner, 0, left]).then(() => {
        this.wakeUps.hasLeft(owner);
        return this.acquire(key, args, abandoned, isUrgent);
      });
    }
    this.flushSoon();
    const reply = this.acquires.add([key, this.beside(key, 'fence'), this.beside(key, 'queue')], args, decode, abandoned);
    if (isUrgent) this.flush();
    return reply;
  }

  release(key: string, args: readonly Argument[]): Promise<'released' | 'lost'> {
    this.flushSoon();
    return this.releases.add([key, this.beside(key, 'queue')], args, (reply) => (Number(reply) === 1 ? 'released' : 'lost'));
  }

  async renew(batch: readonly RenewRequest[]): Promise<readonly ('renewed' | 'lost')[]> {
    const keysAndArgs = [...batch.map(({ key }) => key), ...batch.flatMap(({ owner, ttl }) => [owner, ttl])];
    const replies = await this.ask(this.renewing, batch.length, keysAndArgs);
    return replies.map((reply) => (Number(reply) === 1 ? 'renewed' : 'lost'));
  }

  ask<Reply>(script: RedisScript<Reply>, keyCount: number, keysAndArgs: readonly Argument[]): Promise<Reply> {
    return script.run(
      this.connection,
      () => keyCount,
      () => keysAndArgs,
    );
  }

  /** @throws {LockConfigError} if the key itself looks like one of these. */
  beside(key: string, what: 'fence' | 'queue'): string {
    return keyBeside(key, what, this.connection);
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

function decode(reply: AcquireScriptReply): AcquireReply {
  if (typeof reply === 'string') return { granted: true, token: Number(reply) };
  const [remaining, holder, ahead] = reply;
  return { granted: false, remaining: Number(remaining), holder, ahead: Number(ahead) };
}
