import type { StoreError } from '../../../core/model/errors.js';
import type { TimedRequest } from '../../../core/store/request-deadlines.js';
import type { RedisClient } from './redis.client.js';

/** One request over a `RedisConnection`, which calls `answered` or `failed` once, in time. */
export interface RedisRequest extends TimedRequest<RedisRequest> {
  isSent: boolean;
  /** On a Cluster it goes to the node of this key; `undefined`: to any node. */
  readonly key?: string;
  /** The master that it was sent to and its replicas; `undefined`: that is not known. */
  nodes?: readonly string[];
  /** The command that was sent last for it, where the client may send it again. */
  command?: SentCommand;
  /** Whether it does no harm after its caller was rejected. */
  readonly mayBeLate?: boolean;
  /** @param isWhole the server may not know the script: send its text. */
  send(client: RedisClient, isWhole: boolean): Promise<unknown>;
  /** @param reply what the client gives: it is to be checked. */
  answered(reply: unknown): void;
  /** It is unknown whether the request was applied, unless the error `isUnsent`. */
  failed(error: StoreError): void;
}

export type ScriptCommand = 'evalsha' | 'eval';
export type ScriptArguments = [script: string, keyCount: number, ...keysAndArgs: (string | number)[]];

/** A way to send scripts. */
export interface ScriptSender {
  send(request: RedisRequest, command: ScriptCommand, args: ScriptArguments): Promise<unknown>;
}

/** The used part of a `Command` of ioredis. */
export interface SentCommand {
  name: string;
  args: unknown[];
}
