import { StoreError } from '../../core/model/errors.js';

const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b/;
/** Of a Cluster client, which could not follow a key that moves. */
const REDIRECTION = /^(MOVED|ASK) /;
/** `non local key`: of a slot that moves to another node while a script runs. */
const PASSING =
  /\b(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS|replica instances|max number of clients|non local key)\b/;

/**
 * What the server says of a request is final, unless it says that it is busy, full or not the master now; a broken line is not.
 *
 * @param isCluster whether the client follows redirections.
 */
export function storeErrorOf(cause: unknown, isCluster = false): StoreError {
  const error = errorOfNode(cause);
  const { name } = Object(error) as Partial<Error>;
  const text = textOf(error);
  const isPassing = PASSING.test(text) || (isCluster && REDIRECTION.test(text));
  const isFinal = name === 'ReplyError' ? !isPassing : REFUSED.test(text) || text.includes('subscriber mode');
  return new StoreError(`Redis: ${text}`, { transient: !isFinal, cause: error });
}

/** What an error says. That of a host with several addresses says nothing itself. */
export function textOf(cause: unknown): string {
  const { message, errors } = Object(errorOfNode(cause)) as Partial<AggregateError>;
  return message || (errors as unknown[] | undefined)?.map(textOf).join(', ') || String(message ?? cause);
}

/** A Cluster client wraps what its nodes say. */
function errorOfNode(cause: unknown): unknown {
  return (cause as { lastNodeError?: Error } | undefined)?.lastNodeError ?? cause;
}

export function unsent(message: string, cause?: unknown): StoreError {
  return new StoreError(message, { transient: true, isUnsent: true, cause });
}

export function closed(): StoreError {
  return new StoreError('The Redis client is closed.', { transient: false, isUnsent: true });
}
