import { StoreError } from '../../core/model/errors.js';

const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b/;
const PASSING =
  /\b(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|replica instances|OOM|MISCONF|NOREPLICAS|max number of clients)\b/;

/** What the server says of a request is final, unless it says that it is busy, full or not the master now; a broken line is not. */
export function storeErrorOf(cause: unknown): StoreError {
  const { name } = Object(errorOfNode(cause)) as Partial<Error>;
  const text = textOf(cause);
  const isFinal = name === 'ReplyError' ? !PASSING.test(text) : REFUSED.test(text) || text.includes('subscriber mode');
  return new StoreError(`Redis: ${text}`, { transient: !isFinal, cause });
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
