import { createHash } from 'node:crypto';
import type { RedisConnection } from '../connection/redis.connection.js';
import { ScriptRequest, type Argument } from './script.request.js';

export type { Argument };

const NONE: Argument[] = [];

/** Lists the KEYS of a call, which share a slot of a Cluster. */
export type KeysOf = (key: string, keyPrefix: string) => string[];

export interface ScriptOptions {
  /** Default: the key alone. */
  readonly keysOf?: KeysOf;
  /** Calls in one request at most, default 1: the server does nothing else meanwhile. To one call a script gives its reply, to several a list. */
  readonly largest?: number;
  /** Whether it does no harm after its caller was rejected. */
  readonly mayBeLate?: boolean;
}

/** A Lua script. Calls that are flushed together share requests. On a Cluster, where keys are at several nodes, each is a request of its own. */
export class RedisScript {
  /** The name by which the server knows it. */
  readonly sha: string;
  readonly mayBeLate: boolean;
  private readonly keysOf: KeysOf;
  private readonly largest: number;
  private requests: ScriptRequest[] = [];

  constructor(
    readonly connection: RedisConnection,
    readonly source: string,
    { keysOf = (key) => [key], largest = 1, mayBeLate = false }: ScriptOptions = {},
  ) {
    this.sha = createHash('sha1').update(source).digest('hex');
    this.keysOf = keysOf;
    this.largest = connection.client.isCluster ? 1 : largest;
    this.mayBeLate = mayBeLate;
  }

  /**
   * Answered or rejected within requestTimeout, once {@link flush} has been called.
   *
   * @param decode throws what the caller is rejected with, if the reply is not one of the script.
   * @param common stands before the arguments, once for all calls of a request.
   */
  add<T>(key: string, args: Argument[], decode: (reply: unknown) => T, common: Argument[] = NONE): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = { key, keys: this.keysOf(key, this.connection.keyPrefix), args, decode, resolve, reject };
      const last = this.requests.at(-1);
      if (last && last.calls.length < this.largest && last.common[0] === common[0]) last.calls.push(call);
      else this.requests.push(new ScriptRequest(this, common, [call]));
    });
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
