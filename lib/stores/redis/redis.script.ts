import { createHash } from 'node:crypto';
import { LockConfigError, type StoreError } from '../../core/model/errors.js';
import { LinkedEntry } from '../../core/util/linked-list.js';
import { storeErrorOf, type RedisClient, type RedisConnection, type RedisRequest } from './redis.connection.js';
import { listOf } from './redis.replies.js';

export type Argument = string | number;

interface Call {
  readonly key: string;
  readonly decode: (reply: unknown) => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Lists the KEYS of a call. */
export type KeysOf = (key: string, keyPrefix: string) => string[];

/**
 * A Lua script that is sent by its hash, or whole where the server does not know it: at first, after a restart or SCRIPT FLUSH. Calls that are
 * flushed together go as one request, whose cost is then shared. To one call a script gives its reply, to several a list.
 */
export class RedisScript {
  readonly sha: string;
  private requests: ScriptRequest[] = [];

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
   */
  add<T>(key: string, args: Argument[], decode: (reply: unknown) => T): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      const keys = this.keysOf(key, this.connection.keyPrefix);
      const call: Call = { key, decode, resolve, reject };
      const last = this.requests.at(-1);
      if (last && last.calls.length < this.largest) last.add(keys, args, call);
      else this.requests.push(new ScriptRequest(this, keys, args, [call]));
    }) as Promise<T>;
  }

  flush(): void {
    const { requests } = this;
    if (requests.length === 0) return;
    this.requests = [];
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

  constructor(
    private readonly script: RedisScript,
    private readonly keys: string[],
    private readonly args: Argument[],
    readonly calls: Call[],
  ) {
    super();
  }

  add(keys: readonly string[], args: readonly Argument[], call: Call): void {
    this.keys.push(...keys);
    this.args.push(...args);
    this.calls.push(call);
  }

  send(client: RedisClient, isWhole: boolean): Promise<unknown> {
    const { keys, args, script } = this;
    if (isWhole) return client.eval(script.source, keys.length, ...keys, ...args);
    return client.evalsha(script.sha, keys.length, ...keys, ...args);
  }

  answered(reply: unknown): void {
    const { calls } = this;
    let replies: readonly unknown[];
    try {
      replies = calls.length === 1 ? [reply] : listOf(reply, calls.length);
    } catch (error) {
      return this.failed(error as StoreError);
    }
    calls.forEach((call, index) => settle(call, replies[index]));
  }

  failed(error: StoreError): void {
    const { calls } = this;
    // A key that the user may not use fails the whole request, before anything of it is done: the others must not suffer.
    if (calls.length > 1 && isForbidden(error)) calls.forEach((_call, index) => this.script.connection.send(this.part(index)));
    else for (const { key, reject } of calls) reject(refusalOf(key, error));
  }

  private part(index: number): ScriptRequest {
    const { keys, args, calls, script } = this;
    const one = <T>(all: readonly T[]): T[] => all.slice((index * all.length) / calls.length, ((index + 1) * all.length) / calls.length);
    return new ScriptRequest(script, one(keys), one(args), one(calls));
  }
}

function settle({ key, decode, resolve, reject }: Call, reply: unknown): void {
  try {
    if (reply instanceof Error) reject(refusalOf(key, storeErrorOf(reply)));
    else resolve(decode(reply));
  } catch (error) {
    reject(error);
  }
}

/** The user may not do this, or not with one of these keys. */
function isForbidden({ message }: StoreError): boolean {
  return /\bNOPERM\b/.test(message);
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
