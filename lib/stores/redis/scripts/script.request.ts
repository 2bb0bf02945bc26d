import { configError, type LockConfigError, messageOf, type StoreError } from '../../../core/model/errors.js';
import { LinkedEntry } from '../../../core/util/linked-list.js';
import type { RedisClient } from '../connection/redis.client.js';
import { storeErrorOf } from '../connection/redis.errors.js';
import { Unacknowledged } from '../connection/redis.pipelines.js';
import type { RedisRequest, ScriptArguments } from '../connection/redis.request.js';
import { listOf } from '../redis.values.js';
import type { RedisScript } from './redis.script.js';

export type Argument = string | number;

/** A call of a script, and the promise of its result. */
export interface ScriptCall {
  readonly key: string;
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
  resolve(result: never): void;
  reject(error: unknown): void;
}

/** Calls of one script in one request. It is sent by its hash, and whole once where the server does not know it. */
export class ScriptRequest extends LinkedEntry<RedisRequest> implements RedisRequest {
  endsAt = 0;
  isSent = false;
  nodes: RedisRequest['nodes'];
  command: RedisRequest['command'];

  constructor(
    private readonly script: RedisScript,
    readonly common: readonly Argument[],
    readonly calls: ScriptCall[],
  ) {
    super();
  }

  get key(): string {
    return this.calls[0]!.key;
  }

  get mayBeLate(): boolean {
    return this.script.mayBeLate;
  }

  send(_: RedisClient, isWhole: boolean): Promise<unknown> {
    const { script, common, calls } = this;
    const args: ScriptArguments = [isWhole ? script.source : script.sha, calls.length * calls[0]!.keys.length];
    for (const { keys } of calls) args.push(...keys);
    args.push(...common);
    for (const call of calls) args.push(...call.args);
    return script.connection.scripts.send(this, isWhole ? 'eval' : 'evalsha', args);
  }

  answered(answer: unknown): void {
    const { reply, error } = answer instanceof Unacknowledged ? answer : { reply: answer };
    const { script, calls } = this;
    if (calls.length === 1) return settle(script, calls[0]!, reply, error);
    try {
      const replies = listOf(reply, calls.length);
      calls.forEach((call, index) => settle(script, call, replies[index], error));
    } catch (problem) {
      this.failed(problem as StoreError);
    }
  }

  failed(error: StoreError): void {
    const { calls, script, common } = this;
    const isDivided = calls.length > 1 && isOfOneKey(error);
    for (const call of calls) {
      // One key fails the whole request: the others must not suffer. What was done of it may be done again.
      if (isDivided) script.connection.send(new ScriptRequest(script, common, [call]));
      else call.reject(refusalOf(call.key, error));
    }
  }
}

/** @param shortfall too few replicas have what was written for this result. What was refused is known without them. */
function settle(script: RedisScript, call: ScriptCall, reply: unknown, shortfall: Unacknowledged['error'] | undefined): void {
  try {
    if (reply instanceof Error) throw refusalOf(call.key, storeErrorOf(reply));
    const result = script.resultOf(reply, call.key);
    if (shortfall && result !== 'lost' && (result as { granted?: boolean }).granted !== false) throw shortfall;
    call.resolve(result as never);
  } catch (error) {
    call.reject(error);
  }
}

/** The user may not use one of these keys; or they are in several slots of a Cluster that a proxy stands before. */
function isOfOneKey({ message }: StoreError): boolean {
  return /\b(NOPERM|TRYAGAIN|CROSSSLOT|non local key)\b/.test(message);
}

/** So the scripts call the kinds of lock, what they are asked for first. */
const OTHER_KIND =
  /WRONGTYPE (mutex|read\/write lock|semaphore|count-down latch): (mutex|read\/write lock|semaphore|count-down latch)( \d+)?$/;

/** A key that is used as two kinds of lock is a mistake in the program. */
function refusalOf(key: string, error: StoreError): StoreError | LockConfigError {
  const [, wanted, found] = OTHER_KIND.exec(messageOf(error)) ?? [];
  if (wanted === undefined) return error;
  return configError('KIND', `"${key}" is in use as a ${found}: it cannot be a ${wanted} at the same time.`, { key, cause: error.cause });
}
