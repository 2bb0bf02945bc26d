import { messageOf, StoreError } from '../../core/model/errors.js';

/** Before the request could have left. */
const UNSENT: readonly unknown[] = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'];
const UNIMPLEMENTED = 12;
const UNAUTHENTICATED = 16;
/** The codes of gRPC that stay until somebody changes the options or the server: an argument, a right, a user, a method. What else is said may pass. */
const FINAL: readonly unknown[] = [3, 5, 7, UNIMPLEMENTED, UNAUTHENTICATED];
/** The same by the text: these codes are also those of "too many requests" and of a learner, and this page has none. */
const FINAL_TEXT = /database space exceeded|authentication is not enabled|HTTP request to an HTTPS server|of another cluster/;
/** Texts of a member that takes no request at all. Others may: it is the only one that is new, or set up like this. A learner has code 14, or 9 from etcd 3.6. */
const NOT_TAKEN = /not supported for learner|HTTP request to an HTTPS server/;
/** The token is too old, or not known to this member yet. Their codes are 16, 3 and, from some parts of etcd, 2. */
const SIGNED_OUT = /revision of auth store is old|invalid auth token/;
/** Advice about a refusal, by what etcd says. */
const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/database space exceeded/, 'Compact and defragment it, disarm the alarm, and start etcd with --auto-compaction-retention=1h.'],
  [/permission denied/, 'Grant its user readwrite on the prefix: etcdctl role grant-permission <role> readwrite <prefix> --prefix=true.'],
  [/user name is empty/, 'Give "auth". The gateway does not know a user by the name in its certificate.'],
  [/authentication is not enabled/, 'Leave "auth" out, or run etcdctl auth enable.'],
  [/of another cluster/, 'Each would grant the same key: give the members of one only.'],
  [/not supported for learner/, 'It copies the data, and does not vote yet: give the members that do, too, or run etcdctl member promote.'],
  [/HTTP request to an HTTPS server|never answered/, 'Its endpoints begin with https:// if it has TLS, and with http:// if not.'],
];

/** An answer that is no success. Anybody between here and etcd may have given it. */
export class Refusal extends Error {
  constructor(
    message: string,
    /** A code of gRPC; `undefined`: it is not from etcd. */
    private readonly code?: unknown,
  ) {
    super(message);
  }

  /** Whether the same user may do the same with another token. */
  get isSignedOut(): boolean {
    return this.code === UNAUTHENTICATED || SIGNED_OUT.test(this.message);
  }

  /** Nothing was done, and another member may do it. */
  get isUntaken(): boolean {
    return this.code === UNIMPLEMENTED || NOT_TAKEN.test(this.message);
  }

  get isFinal(): boolean {
    return (FINAL.includes(this.code) && !SIGNED_OUT.test(this.message)) || FINAL_TEXT.test(this.message);
  }
}

/** @throws {Refusal} unless the text is an object. */
export function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // It is not from etcd.
  }
  throw foreign(text);
}

/** @throws {Refusal} unless the text is a reply with the header of etcd: a page can be JSON, too. */
export function replyIn(text: string): object {
  const reply = objectIn(text);
  if (isOfEtcd(reply)) return reply;
  throw foreign(text);
}

/** @throws {Refusal} unless the line is a message of a watch that goes on. */
export function messageIn(line: string): object {
  const { result, error } = objectIn(line);
  const { message, grpc_code: code } = Object(error) as Record<string, unknown>;
  if (typeof message === 'string') throw new Refusal(excerptOf(message), code);
  if (!isOfEtcd(result)) throw foreign(line);
  if (result.canceled) throw cancellationOf(result.cancel_reason);
  return result;
}

export function foreign(text: string): Refusal {
  return new Refusal(`an answer that is not of etcd: ${excerptOf(text)}`);
}

export function refusalOf(status: number | undefined, text: string): Refusal {
  if (status === 404)
    return new Refusal('its JSON gateway is not there: etcd 3.4 or later is needed, without --enable-grpc-gateway=false', UNIMPLEMENTED);
  try {
    const { error, message = error, code } = objectIn(text);
    if (typeof message === 'string' && typeof code === 'number') return new Refusal(excerptOf(message), code);
  } catch {
    // It is not from etcd.
  }
  return new Refusal(`status ${status}: ${excerptOf(text)}`);
}

/** @param endpoint that has said it, or is silent. */
export function storeErrorOf(cause: unknown, endpoint: string): StoreError {
  if (cause instanceof StoreError) return cause;
  const text = messageOf(cause);
  const advice = ADVICE.find(([pattern]) => pattern.test(text))?.[1];
  const message = `etcd: ${endpoint}: ${text}${advice === undefined ? '' : `. ${advice}`}`;
  if (cause instanceof Refusal) {
    const { isFinal, isUntaken } = cause;
    return new StoreError(message, { transient: !isFinal, isRefusal: isFinal || isUntaken, isUnsent: isUntaken, cause });
  }
  const { code = '' } = cause as NodeJS.ErrnoException;
  // A certificate does not get better by itself, and nothing was sent.
  const isFinal = /^(ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|CERT_)/.test(code);
  return new StoreError(message, { transient: !isFinal, isRefusal: isFinal, isUnsent: isFinal || UNSENT.includes(code), cause });
}

/** A cancelled watch has its code in the text only. An older etcd says of an old token that permission is denied. */
function cancellationOf(reason: unknown): Refusal {
  const text = typeof reason === 'string' ? excerptOf(reason) : 'the watch was cancelled';
  return new Refusal(text, /permission denied|user name is empty/.test(text) ? UNAUTHENTICATED : undefined);
}

function isOfEtcd(value: unknown): value is { canceled?: unknown; cancel_reason?: unknown } {
  const { header } = Object(value) as { header?: { cluster_id?: unknown } };
  return typeof header?.cluster_id === 'string';
}

/** A page can be long, and have any characters. */
function excerptOf(text: string): string {
  return text
    .slice(0, 1000)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .slice(0, 200);
}
