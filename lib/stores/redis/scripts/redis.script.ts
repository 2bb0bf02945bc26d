import { createHash } from 'node:crypto';
import type { RedisConnection } from '../connection/redis.connection.js';
import { sources } from '../lua.generated.js';
import { ScriptRequest, type Argument } from './script.request.js';

export type { Argument };

const NONE: Argument[] = [];

/** @param fenceTimeout milliseconds, for a script that gives tokens: a constant of its source, since each argument costs time. */
export function lua(name: keyof typeof sources, fenceTimeout?: number): string {
  return sources[name].replaceAll('FENCE_TIMEOUT', `'${fenceTimeout}'`);
}

export interface ScriptOptions {
  /** Calls in one request at most, default 1: the server does nothing else meanwhile. To one call a script gives its reply, to several a list. */
  readonly largest?: number;
  /** Whether it does no harm after its caller was rejected. */
  readonly mayBeLate?: boolean;
}

/** A Lua script. Calls that are flushed together share requests. On a Cluster, where keys are at several nodes, each is a request of its own. */
export class RedisScript<Result = unknown> {
  /** The name by which the server knows it. */
  readonly sha: string;
  readonly mayBeLate: boolean;
  private readonly largest: number;
  private requests: ScriptRequest[] = [];

  /**
   * @param keysOf lists the KEYS of a call, which share a slot of a Cluster.
   * @param resultOf throws what the caller is rejected with, if the reply is not one of the script.
   */
  constructor(
    readonly connection: RedisConnection,
    readonly source: string,
    private readonly keysOf: (key: string, keyPrefix: string) => string[],
    readonly resultOf: (reply: unknown, key: string) => Result,
    { largest = 1, mayBeLate = false }: ScriptOptions = {},
  ) {
    this.sha = createHash('sha1').update(source).digest('hex');
    this.largest = connection.client.isCluster ? 1 : largest;
    this.mayBeLate = mayBeLate;
  }

  /**
   * Answered or rejected within requestTimeout, once {@link flush} has been called.
   *
   * @param common stands before the arguments, once for all calls of a request.
   */
  add(key: string, args: Argument[], common: Argument[] = NONE): Promise<Result> {
    return new Promise((resolve, reject) => {
      const call = { key, keys: this.keysOf(key, this.connection.keyPrefix), args, resolve, reject };
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
  ask(key: string, args: Argument[]): Promise<Result> {
    const reply = this.add(key, args);
    this.flush();
    return reply;
  }
}
