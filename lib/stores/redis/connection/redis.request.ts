import type { StoreError } from '../../../core/model/errors.js';
import type { TimedRequest } from '../../../core/store/request-deadlines.js';
import type { RedisClient } from './redis.client.js';
import type { SentCommand } from './redis.recall.js';

/** One request over a `RedisConnection`, which calls `answered` or `failed` once, in time. */
export interface RedisRequest extends TimedRequest<RedisRequest> {
  isSent: boolean;
  /** On a Cluster they are at one node; `undefined`: it goes to any. */
  readonly keys?: readonly string[];
  /** Where it was sent; `undefined`: that is not known. */
  node?: string;
  /** What was sent last for it, where the client may send it again. */
  command?: SentCommand;
  /** It does no harm when its caller has been told long since that it failed. */
  readonly mayBeLate?: boolean;
  /** @param isWhole the server does not know the script: send its text. */
  send(client: RedisClient, isWhole: boolean): Promise<unknown>;
  /** @param reply what the client gives: it is to be checked. */
  answered(reply: unknown): void;
  /** Whether the request was applied is unknown, unless the error `isUnsent`. */
  failed(error: StoreError): void;
}
