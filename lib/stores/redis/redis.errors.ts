import { StoreError } from '../../core/model/errors.js';

const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b/;
const PASSING =
  /\b(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|replica instances|OOM|MISCONF|NOREPLICAS|max number of clients)\b/;

/** What the server says of a request is final, unless it says that it is busy, full or not the master now; a broken line is not. */
export function storeErrorOf(cause: unknown): StoreError {
  const text = textOf(cause);
  const isFinal = isReply(errorOfNode(cause), text) ? !PASSING.test(text) : REFUSED.test(text) || text.includes('subscriber mode');
  return new StoreError(`Redis: ${text}`, { transient: !isFinal, cause });
}

/** Whether the server says so. The errors of node-redis have no name for that, but a server begins with a word in capitals, and nothing else does. */
function isReply(error: unknown, text: string): boolean {
  const { name, code } = Object(error) as Partial<NodeJS.ErrnoException>;
  return name === 'ReplyError' || (name === 'Error' && code === undefined && /^[A-Z][A-Z\d]+ /.test(text));
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
