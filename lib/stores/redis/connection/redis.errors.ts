import { messageOf, StoreError } from '../../../core/model/errors.js';

const REFUSED = /\b(NOAUTH|WRONGPASS|NOPERM)\b/;
/** For a Cluster client it passes: it could not follow a key that moves. */
const REDIRECTION = /^(MOVED|ASK) /;
/** The server has not refused: the key moves from one node to another, or the server becomes a replica while it waits for its own. */
const MOVING = /\b(TRYAGAIN|CROSSSLOT|UNBLOCKED|non local key)\b/;
export const OF_CLUSTER = 'It is a node of a Cluster: redisStore({ cluster: [{ host, port }] }) finds the node of each key.';
export const OF_REPLICA = 'It is a replica: use the address of the master, or sentinels.';
const NO_DATABASE = 'Choose a database that the server has, or raise "databases" in its config.';
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [REDIRECTION, OF_CLUSTER],
  [/^READONLY/, OF_REPLICA],
  [/DB index is out of range/, NO_DATABASE],
  [/^ERR SELECT is not allowed in cluster mode/, OF_CLUSTER],
  [/^OOM/, 'Give it more memory, or a Redis of its own to locks.'],
  [/^MISCONF/, 'Look at its disk and its log.'],
  [/\bNOPERM\b/, 'Check the ACL rules of the user: docs/redis.md has what locks need.'],
  [/\b(NOAUTH|WRONGPASS)\b/, 'Check the user and the password.'],
];
/** Where the server says which line of a script was refused. */
const LINE = /\.? script: \w+, on @user_script:\d+\.?$/;
/** `non local key`: of a slot that moves to another node while a script runs. */
const PASSING =
  /\b(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|BUSY|OOM|MISCONF|NOREPLICAS|UNBLOCKED|replica instances|max number of clients|non local key)\b/;

/**
 * A server's refusal is final, unless it is busy, full or not the master now; a broken connection is not.
 *
 * @param isCluster whether the client follows redirections.
 */
export function storeErrorOf(cause: unknown, isCluster = false): StoreError {
  if (cause instanceof StoreError) return cause;
  const error = errorOfNode(cause);
  const text = messageOf(error);
  const isRedirected = REDIRECTION.test(text);
  const isPassing = PASSING.test(text) || (isCluster && isRedirected);
  const isReply = isAnswer(error);
  const isFinal = isReply ? !isPassing : REFUSED.test(text);
  const isMoving = MOVING.test(text) || (isCluster && isRedirected);
  const isRefusal = (isReply && !isMoving) || REFUSED.test(text);
  return new StoreError(`Redis: ${isRefusal ? advised(text) : text}`, {
    transient: !isFinal,
    isRefusal,
    // A node does nothing of what it sends on to another one.
    isUnsent: isRedirected && !isCluster,
    cause: error,
  });
}

/** The error of a request that is not sent because of this one. */
export function asUnsent({ message, transient, isRefusal, cause }: StoreError): StoreError {
  return new StoreError(message, { transient, isRefusal, isUnsent: true, cause });
}

export function isRedirection(cause: unknown): boolean {
  return REDIRECTION.test(messageOf(errorOfNode(cause)));
}

/** ioredis says so by an event, and goes on in database 0. */
export function isOfSelect(cause: unknown): boolean {
  return (cause as { command?: { name?: string } } | undefined)?.command?.name === 'select';
}

function advised(text: string): string {
  const advice = ADVICE.find(([refusal]) => refusal.test(text))?.[1];
  return advice === undefined ? text : `${text.replace(LINE, '').replace(/\.$/, '')}. ${advice}`;
}

/** Whether the server says so. The errors of node-redis have no name for that, but a server begins with a word in capitals, and nothing else does. */
export function isAnswer(error: unknown): boolean {
  const { name, code } = Object(error) as Partial<NodeJS.ErrnoException>;
  return name === 'ReplyError' || (name === 'Error' && code === undefined && /^[A-Z][A-Z\d]+ /.test(messageOf(error)));
}

/** A Cluster client wraps what its nodes say. */
function errorOfNode(cause: unknown): unknown {
  return (cause as { lastNodeError?: Error } | undefined)?.lastNodeError ?? cause;
}

function unsent(message: string, cause?: unknown): StoreError {
  return new StoreError(message, { transient: true, isUnsent: true, cause });
}

/** So says a client whose server ends each new connection. */
const CUT = /\b(ECONNRESET|EPIPE|Connection is closed|Socket closed|socket disconnected)\b/;
/** It says so where the server speaks another protocol. */
const FOREIGN = /\b(Unknown RESP type|EPROTO)\b/;

/** @param hasAnswered whether the server ever has: then the address is right. */
export function notConnected(within: number, cause: unknown, hasAnswered: boolean, isTls: boolean): StoreError {
  const message = `Redis is not connected within ${within} ms`;
  const text = cause === undefined ? '' : messageOf(errorOfNode(cause));
  let problem: string | undefined;
  if (CUT.test(text)) problem = 'the server closed the connection before it answered';
  else if (FOREIGN.test(text)) problem = 'the server does not answer as a Redis does';
  // A Redis without TLS waits for the end of what seems a command.
  else if (isTls && /^$|ETIMEDOUT|Connection timeout/.test(text)) problem = 'the server does not answer over TLS';
  if (hasAnswered || problem === undefined) return unsent(`${message}${text && `: ${text.replace(/\.$/, '')}`}.`, cause);
  const reason = `${problem}: is it redis:// or rediss://, and is this a Redis?`;
  return unsent(`${message}: ${reason}`, new Error(reason, { cause }));
}

export function storeClosed(isUnsent = true): StoreError {
  return new StoreError('The Redis store is closed.', { transient: false, isUnsent });
}
