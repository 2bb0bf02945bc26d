import { createHash } from 'node:crypto';
import { LockConfigError, StoreError } from '../../core/model/errors.js';
import { now } from '../../core/util/clock.js';
import { LinkedEntry } from '../../core/util/linked-list.js';
import { Unacknowledged } from './redis.acks.js';
import { storeErrorOf } from './redis.errors.js';
import type { RedisClient, RedisConnection, RedisRequest } from './redis.connection.js';
import { listOf } from './redis.replies.js';
import { slotOf } from './redis.slots.js';

export type Argument = string | number;

const NONE: never[] = [];
/** Milliseconds. */
const APART = 10_000;

/** Lists the KEYS of a call, which share a slot of a Cluster. */
export type KeysOf = (key: string, keyPrefix: string) => string[];

/**
 * A Lua script that is sent by its hash, or whole where the server does not know it: at first, after a restart or SCRIPT FLUSH. Calls that are
 * flushed together go as one request, whose cost is then shared; on a Cluster as one for each slot, since a script may not use keys of several. To one
 * call a script gives its reply, to several a list.
 */
export class RedisScript {
  readonly sha: string;
  private requests: ScriptRequest[] = [];
  /** Of a Cluster: the last request for each slot. */
  private readonly bySlot = new Map<number, ScriptRequest>();
  /** Until when the keys of a slot are asked for one by one. */
  private readonly apart = new Map<number, number>();

  /** @param largest calls in one request at most: the server does nothing else meanwhile. */
  constructor(
    readonly connection: RedisConnection,
    readonly source: string,
    private readonly keysOf: KeysOf = (key) => [key],
    private readonly largest = 1,
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
    const keys = this.keysOf(key, this.connection.keyPrefix);
    const slot = this.largest > 1 && this.connection.client.isCluster ? slotOf(this.connection.keyPrefix + key) : undefined;
    let request = slot === undefined ? this.requests.at(-1) : this.bySlot.get(slot);
    if (request && request.size < this.largest && request.common[0] === common[0]) request.add(keys, args);
    else {
      this.requests.push((request = new ScriptRequest(this, keys, common, args, slot)));
      if (slot !== undefined && !this.isApart(slot)) this.bySlot.set(slot, request);
    }
    const index = request.size - 1;
    return request.replies.then(
      (replies) => request.checked(decode(replyOf(key, replies[index]))),
      (error: StoreError) => replyOf(key, error) as T,
    );
  }

  /** The keys of a slot that moves are on two nodes for a while, and a request for several is not answered then. */
  failedTogether(slot: number): void {
    this.apart.set(slot, now() + APART);
  }

  private isApart(slot: number): boolean {
    const end = this.apart.size > 0 ? this.apart.get(slot) : undefined;
    if (end === undefined || now() < end) return end !== undefined;
    this.apart.delete(slot);
    return false;
  }

  flush(): void {
    const { requests } = this;
    if (requests.length === 0) return;
    this.requests = [];
    this.bySlot.clear();
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
  /** Of calls. */
  size = 1;
  /** One for each call; an `Error` where it failed. */
  readonly replies: Promise<readonly unknown[]>;
  private shortfall: Unacknowledged['error'] | undefined;
  private settle!: { resolve(replies: readonly unknown[] | Promise<unknown[]>): void; reject(error: StoreError): void };

  constructor(
    private readonly script: RedisScript,
    private readonly keys: string[],
    readonly common: Argument[],
    private readonly args: Argument[],
    /** Of a Cluster. */
    private readonly slot?: number,
  ) {
    super();
    this.replies = new Promise((resolve, reject) => (this.settle = { resolve, reject }));
  }

  add(keys: readonly string[], args: readonly Argument[]): void {
    this.keys.push(...keys);
    this.args.push(...args);
    this.size++;
  }

  send(_: RedisClient, isWhole: boolean): Promise<unknown> {
    const { keys, common, args, script } = this;
    const { scripts } = script.connection;
    if (isWhole) return scripts.eval(script.source, keys.length, ...keys, ...common, ...args);
    return scripts.evalsha(script.sha, keys.length, ...keys, ...common, ...args);
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
      this.settle.resolve(this.size === 1 ? [reply] : listOf(reply, this.size));
    } catch (error) {
      this.settle.reject(error as StoreError);
    }
  }

  failed(error: StoreError): void {
    if (this.size > 1 && this.slot !== undefined) this.script.failedTogether(this.slot);
    // One key fails the whole request, before anything of it is done: the others must not suffer.
    if (this.size > 1 && isOfOneKey(error))
      this.settle.resolve(Promise.all(Array.from({ length: this.size }, (_, index) => this.sendAlone(index))));
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

/** The user may not use one of these keys, or those of a slot that moves are on two nodes for now. */
function isOfOneKey({ message }: StoreError): boolean {
  return /\b(NOPERM|TRYAGAIN)\b/.test(message);
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
