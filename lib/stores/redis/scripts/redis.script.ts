import { createHash } from 'node:crypto';
import { LockConfigError, StoreError } from '../../../core/model/errors.js';
import { now } from '../../../core/util/clock.js';
import { LinkedEntry } from '../../../core/util/linked-list.js';
import { Unacknowledged } from '../connection/redis.pipelines.js';
import { storeErrorOf } from '../connection/redis.errors.js';
import type { RedisClient } from '../connection/redis.client.js';
import type { RedisConnection } from '../connection/redis.connection.js';
import type { RedisRequest } from '../connection/redis.request.js';
import { listOf } from './redis.replies.js';
import { slotOf } from '../connection/redis.slots.js';

export type Argument = string | number;

/** Of a Cluster: a slot, or the address of a node. */
type Group = number | string;

const NONE: never[] = [];
/**
 * Of a renewal. Where a client is sent to a node to which a slot moves, the node takes all keys of the script for its own, also those of that slot which
 * are not there yet: what it says of several keys is asked again.
 */
const LOST = 0;
const APART = 10_000; // milliseconds

/** Lists the KEYS of a call, which share a slot of a Cluster. */
export type KeysOf = (key: string, keyPrefix: string) => string[];

/**
 * A Lua script that is sent by its hash, or whole where the server does not know it: at first, after a restart or SCRIPT FLUSH. Calls that are
 * flushed together go as one request, whose cost is then shared; on a Cluster as one for each slot or node. To one call a script gives its reply, to
 * several a list.
 */
export class RedisScript {
  readonly sha: string;
  mayBeLate = false;
  private requests: ScriptRequest[] = [];
  /** Of a Cluster: the last request for each group. */
  private readonly byGroup = new Map<Group, ScriptRequest>();
  /** Until when the keys of a group are not asked for together. */
  private readonly apart = new Map<Group, number>();
  /** What a Cluster client may still send once more to a node that is back, though the request is over. */
  private readonly overdue = new Map<ScriptRequest, Promise<unknown>>();

  /**
   * @param largest calls in one request at most: the server does nothing else meanwhile.
   * @param scope of a request on a Cluster, whose keys must be of one slot where they are declared. A script for a `node` takes any number of its keys as
   *   arguments instead. A server allows that to scripts without a `#!` line, as long as it has all these keys.
   */
  constructor(
    readonly connection: RedisConnection,
    readonly source: string,
    private readonly keysOf: KeysOf = (key) => [key],
    private readonly largest = 1,
    private readonly scope: 'slot' | 'node' = 'slot',
  ) {
    this.sha = createHash('sha1').update(source).digest('hex');
  }

  /**
   * Answered or rejected within requestTimeout, once {@link flush} has been called.
   *
   * @param decode throws what the caller is rejected with, if the reply is none.
   * @param common stands before the arguments, once for all calls of a request.
   */
  add<T>(key: string, args: Argument[], decode: (reply: unknown) => T, common: Argument[] = NONE): Promise<T> {
    let keys: string[];
    try {
      keys = this.keysOf(key, this.connection.keyPrefix);
    } catch (error) {
      return Promise.reject(error);
    }
    const group = this.groupOf(key);
    let request = group === undefined ? this.requests.at(-1) : this.byGroup.get(group);
    if (request && request.size < this.largest && request.common[0] === common[0]) request.add(keys, args);
    else {
      this.requests.push((request = new ScriptRequest(this, keys, common, args, group)));
      if (group !== undefined && !this.isApart(group)) this.byGroup.set(group, request);
    }
    const index = request.size - 1;
    return request.replies.then(
      (replies) => request.checked(decode(replyOf(key, replies[index]))),
      (error: StoreError) => replyOf(key, error) as T,
    );
  }

  /** `undefined`: it may go together with any other. */
  private groupOf(key: string): Group | undefined {
    const { client, keyPrefix } = this.connection;
    if (this.largest === 1 || !client.isCluster) return undefined;
    const slot = slotOf(keyPrefix + key);
    const node = this.scope === 'node' ? client.slots?.[slot]?.[0] : undefined;
    return node === undefined || this.isApart(node) ? slot : node;
  }

  /** The keys of a slot that moves are on two nodes for a while, and a request for several is not answered then. */
  failedTogether(group: Group): void {
    this.apart.set(group, now() + APART);
  }

  noteOverdue(request: ScriptRequest, sending: Promise<unknown>): void {
    if (!this.connection.client.isCluster) return;
    this.overdue.set(request, sending);
    sending.finally(() => this.overdue.delete(request)).catch(() => undefined);
  }

  /** Resolves when the client sends nothing more for this owner of the requests that are over; `undefined`: there is nothing. */
  settled(owner: string): Promise<unknown> | undefined {
    if (this.overdue.size === 0) return undefined;
    const sending = [...this.overdue].flatMap(([request, each]) => (request.isFor(owner) ? each : []));
    return sending.length > 0 ? Promise.allSettled(sending) : undefined;
  }

  private isApart(group: Group): boolean {
    const end = this.apart.size > 0 ? this.apart.get(group) : undefined;
    if (end === undefined || now() < end) return end !== undefined;
    this.apart.delete(group);
    return false;
  }

  flush(): void {
    const { requests } = this;
    if (requests.length === 0) return;
    this.requests = [];
    this.byGroup.clear();
    for (const request of requests) this.connection.send(request);
  }

  /** One call, now. */
  ask<T>(key: string, args: Argument[], decode: (reply: unknown) => T): Promise<T> {
    const reply = this.add(key, args, decode);
    this.flush();
    return reply;
  }
}

class ScriptRequest extends LinkedEntry<RedisRequest> implements RedisRequest {
  endsAt = 0;
  isSent = false;
  readonly mayBeLate: boolean;
  /** Of calls. */
  size = 1;
  /** One for each call; an `Error` where it failed. */
  readonly replies: Promise<readonly unknown[]>;
  private sending: Promise<unknown> | undefined;
  private shortfall: Unacknowledged['error'] | undefined;
  private settle!: { resolve(replies: readonly unknown[] | Promise<unknown[]>): void; reject(error: StoreError): void };

  constructor(
    private readonly script: RedisScript,
    readonly keys: string[],
    readonly common: Argument[],
    private readonly args: Argument[],
    private readonly group?: Group,
  ) {
    super();
    this.mayBeLate = script.mayBeLate;
    this.replies = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
  }

  private get isOfNode(): boolean {
    return this.size > 1 && typeof this.group === 'string';
  }

  isFor(owner: string): boolean {
    return this.args.includes(owner);
  }

  add(keys: readonly string[], args: readonly Argument[]): void {
    this.keys.push(...keys);
    this.args.push(...args);
    this.size++;
  }

  send(_: RedisClient, isWhole: boolean): Promise<unknown> {
    const { common, args, script } = this;
    const { scripts, keyPrefix } = script.connection;
    const count = this.isOfNode ? 1 : this.keys.length;
    // The client puts its prefix before those that are declared.
    const keys = this.isOfNode ? this.keys.map((key, index) => (index < count ? key : keyPrefix + key)) : this.keys;
    const rest = [count, ...keys, ...common, ...args] as const;
    return (this.sending = isWhole ? scripts.eval(script.source, ...rest) : scripts.evalsha(script.sha, ...rest));
  }

  /** @throws {LockError} if too few replicas have what was written for this result. What was refused is known without them. */
  checked<T>(result: T): T {
    if (this.shortfall && result !== 'lost' && (result as { granted?: boolean }).granted !== false) throw this.shortfall;
    return result;
  }

  answered(answer: unknown): void {
    const { reply, error } = answer instanceof Unacknowledged ? answer : { reply: answer };
    this.shortfall = error;
    try {
      const replies = this.size === 1 ? [reply] : listOf(reply, this.size);
      this.settle.resolve(
        this.isOfNode ? Promise.all(replies.map((each, index) => (Number(each) === LOST ? this.sendAlone(index) : each))) : replies,
      );
    } catch (error) {
      this.settle.reject(error as StoreError);
    }
  }

  failed(error: StoreError): void {
    if (this.sending) this.script.noteOverdue(this, this.sending);
    // A server may refuse a request for a node in words of its own.
    const isDivided = this.size > 1 && (isOfOneKey(error) || (this.isOfNode && !error.transient));
    // A node that fails is back for all its keys at once. Of a slot that moves, a client may repeat a request for several keys until its time is over.
    if (this.size > 1 && this.group !== undefined && (isDivided || !this.isOfNode)) this.script.failedTogether(this.group);
    // One key fails the whole request: the others must not suffer. What was done of it may be done again.
    if (isDivided) this.settle.resolve(Promise.all(Array.from({ length: this.size }, (_, index) => this.sendAlone(index))));
    else this.settle.reject(error);
  }

  private sendAlone(index: number): Promise<unknown> {
    const { keys, common, args, size, script } = this;
    const one = <T>(all: readonly T[]): T[] => all.slice((index * all.length) / size, ((index + 1) * all.length) / size);
    const request = new ScriptRequest(script, one(keys), common, one(args));
    script.connection.send(request);
    return request.replies.then(
      ([reply]) => {
        this.shortfall ??= request.shortfall;
        return reply;
      },
      (error: unknown) => error,
    );
  }
}

/** @throws {StoreError | LockConfigError} if the reply is an error. */
function replyOf(key: string, reply: unknown): unknown {
  if (!(reply instanceof Error)) return reply;
  throw refusalOf(key, reply instanceof StoreError ? reply : storeErrorOf(reply));
}

/** The user may not use one of these keys; or they are on several nodes, of which a proxy may make one. */
function isOfOneKey({ message }: StoreError): boolean {
  return /\b(NOPERM|TRYAGAIN|CROSSSLOT|non local key)\b/.test(message);
}

/** So the scripts call the kinds of lock, what they are asked for first. */
const OTHER_KIND =
  /WRONGTYPE (mutex|read\/write lock|semaphore|count-down latch): (mutex|read\/write lock|semaphore|count-down latch)( \d+)?$/;

/** A key that is used as two kinds of lock is a mistake in the program. */
function refusalOf(key: string, error: StoreError): StoreError | LockConfigError {
  const [, wanted, found] = OTHER_KIND.exec(error.message) ?? [];
  if (wanted === undefined) return error;
  return new LockConfigError(`"${key}" is in use as a ${found}: it cannot be a ${wanted} at the same time.`, { key, cause: error.cause });
}
