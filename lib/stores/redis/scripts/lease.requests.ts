import type {
  AcquireReply,
  AcquireRequest,
  CheckReply,
  LeaseDriver,
  ReleaseRequest,
  RenewRequest,
  Tenancy,
} from '../../../core/store/lease-driver.js';
import { now } from '../../../core/util/clock.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import {
  integerOf,
  isYes,
  keyAlone,
  keyBeside,
  listOf,
  millisecondsOf,
  textOf,
  unexpected,
  withFenceAndQueue,
  withQueue,
} from '../redis.values.js';
import type { RedisWakeUps } from '../waiting/redis.wakeups.js';
import { lua, RedisScript, type Argument } from './redis.script.js';

type ReleaseReply = 'released' | 'lost';
type RenewReply = 'renewed' | 'lost';

/** Locks that are acquired or released in one request: a fraction of a millisecond's work of the server. */
const LARGEST_BATCH = 64;
/** Renewing is cheap. */
const LARGEST_RENEWAL = 256;
const STATES: readonly CheckReply['state'][] = ['held', 'queued', 'taken', 'free'];

/**
 * The requests of the drivers of one set of scripts. All that is acquired or released within an iteration of the event loop goes together, what is
 * released first, since others may want the key.
 */
export class LeaseRequests {
  private readonly acquires: RedisScript<AcquireReply>;
  private readonly releases: RedisScript<ReleaseReply>;
  /** Releases that must not overtake an acquire. */
  private readonly departures: RedisScript<ReleaseReply>;
  private readonly renewals: RedisScript<RenewReply>;
  private readonly checks: RedisScript<CheckReply>;
  private readonly fences: RedisScript<RenewReply>;
  private isFlushing = false;

  /** @param acked the connection for what replicas must acknowledge; the same one if there is no such demand. */
  constructor(
    private readonly connection: RedisConnection,
    private readonly acked: RedisConnection,
    kind: 'mutex' | 'sharing',
    private readonly fenceTimeout: number,
    private readonly wakeUps: RedisWakeUps,
  ) {
    const batch = { largest: LARGEST_BATCH };
    const renewal = { largest: LARGEST_RENEWAL };
    this.acquires = new RedisScript(acked, lua(`${kind}/acquire`, fenceTimeout), withFenceAndQueue, acquireReplyOf, batch);
    const releasesOver = (over: RedisConnection): RedisScript<ReleaseReply> =>
      // A late one does no harm: it ends what the owner has, which nobody else can have.
      new RedisScript(over, lua(`${kind}/release`, fenceTimeout), withQueue, releaseReplyOf, { ...batch, mayBeLate: true });
    this.releases = releasesOver(connection);
    this.departures = acked === connection ? this.releases : releasesOver(acked);
    this.renewals = new RedisScript(acked, lua(`${kind}/renew`), keyAlone, renewReplyOf, renewal);
    this.checks = new RedisScript(connection, lua(`${kind}/check`), withFenceAndQueue, checkReplyOf);
    this.fences = new RedisScript(connection, lua('mutex/renew'), keyAlone, renewReplyOf, renewal);
  }

  /** The verbs that are the same for all kinds of lock on Redis: all but how a key is acquired. */
  get verbs(): Omit<LeaseDriver, 'acquire'> {
    return {
      // The scripts forget a queue that nobody asks for after so many milliseconds.
      queueEntryLifetime: 60_000,
      wakeUps: this.wakeUps,
      renew: (batch) => this.renew(batch),
      release: (request) => this.sendRelease(this.releases, request),
      leave: async (tenancy) => void (await this.leave(tenancy)),
      check: ({ key, owner }) => this.checks.ask(key, [owner, this.wakeUps.entries.known(owner)]),
    };
  }

  /** @param args those of the script. A request that yields is sent now, with what was to go at the end of the iteration: others wait for it. */
  acquire({ key, yields }: AcquireRequest, args: Argument[]): Promise<AcquireReply> {
    const misled = this.acked.facts.misled ?? this.connection.facts.misled;
    if (misled) return Promise.reject(misled);
    const reply = this.acquires.add(key, args);
    if (yields === undefined) this.flushSoon();
    else this.flush();
    return reply;
  }

  /** A release that arrives behind each acquire that was sent before. */
  leave(tenancy: Tenancy): Promise<ReleaseReply> {
    return this.sendRelease(this.departures, { ...tenancy, keepFor: 0 });
  }

  private renew(batch: readonly RenewRequest[]): readonly Promise<RenewReply>[] {
    this.keepFences(batch);
    const replies = batch.map(({ key, owner, ttl }) => this.renewals.add(key, [owner], [ttl]));
    this.renewals.flush();
    return replies;
  }

  private sendRelease(script: RedisScript<ReleaseReply>, { key, owner, keepFor }: ReleaseRequest): Promise<ReleaseReply> {
    this.flushSoon();
    const entry = this.wakeUps.entries.known(owner);
    return script.add(key, [keepFor === 0 && entry === '' ? owner : `${owner}\n${keepFor}\n${entry}`]);
  }

  /**
   * A fence that ran out under a lease would be forgotten with its last token. Each lease is renewed several times within its length: three times in
   * the life of a fence is one of these times chosen to keep the fence too. Without an answer, a later renewal does it.
   */
  private keepFences(batch: readonly RenewRequest[]): void {
    const time = now();
    const period = this.fenceTimeout / 3;
    for (const { key, ttl } of batch) {
      if (Math.floor(time / period) === Math.floor((time - ttl) / period)) continue;
      const fence = keyBeside(key, 'fence', this.connection.keyPrefix);
      this.fences.add(fence, [''], [Math.max(this.fenceTimeout, 2 * ttl)]).catch(() => undefined);
    }
    this.fences.flush();
  }

  private flushSoon(): void {
    if (this.isFlushing) return;
    this.isFlushing = true;
    process.nextTick(() => this.flush());
  }

  private flush(): void {
    this.isFlushing = false;
    this.releases.flush();
    this.departures.flush();
    this.acquires.flush();
  }
}

function acquireReplyOf(reply: unknown): AcquireReply {
  if (!Array.isArray(reply)) return { granted: true, token: integerOf(reply) };
  if (reply.length === 2) return { ...acquireReplyOf(reply[1]), yielded: releaseReplyOf(reply[0]) };
  const [remaining, holder, ahead] = listOf(reply, 3);
  return { granted: false, remaining: millisecondsOf(remaining), holder: textOf(holder) || null, ahead: integerOf(ahead) };
}

function releaseReplyOf(reply: unknown): ReleaseReply {
  return isYes(reply) ? 'released' : 'lost';
}

function renewReplyOf(reply: unknown): RenewReply {
  return isYes(reply) ? 'renewed' : 'lost';
}

function checkReplyOf(reply: unknown): CheckReply {
  const [word, remaining, holder, token] = listOf(reply);
  const state = STATES.find((one) => one === word);
  if (!state) throw unexpected(word);
  return {
    state,
    remaining: millisecondsOf(remaining),
    holder: textOf(holder ?? '') || null,
    token: token === undefined || token === '' ? null : integerOf(token),
  };
}
