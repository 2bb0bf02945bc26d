import { duration, now } from '../util/clock.js';

/** Every `code` that a {@link LockError} can carry. */
export type LockErrorCode =
  'LOCK_TIMEOUT' | 'LOCK_ABORTED' | 'LOCK_LOST' | 'LOCK_STORE' | 'LOCK_QUORUM' | 'LOCK_UNSUPPORTED' | 'LOCK_CONFIG';

/** The last part of the code at the end of a {@link LockConfigError}'s message: `[LOCK_CONFIG_KEY]`. */
export type ConfigProblem =
  'UNKNOWN_OPTION' | 'OPTION' | 'KEY' | 'KIND' | 'DEADLOCK' | 'METHOD' | 'INSTANCE' | 'MODULE' | 'STORE' | 'FENCE' | 'CALL';

export interface LockErrorOptions {
  /** The key that the error is about, where there is one. */
  key?: string;
  cause?: unknown;
}

// Two copies of this package can meet in one process (an ESM app and a CommonJS feature library), so `instanceof` goes by this brand, not by the prototype.
const BRAND = Symbol.for('nestjs-distributed-lock:error');

function isBranded(value: unknown): value is LockError {
  return typeof value === 'object' && value !== null && BRAND in value;
}

/** The code at the end of a message's first line: docs/errors.md has a heading for each. */
const CODE = / \[LOCK_\w+\]$/m;

function withCode(message: string, code: string): string {
  return CODE.test(message) ? message : message.replace(/$/m, ` [${code}]`);
}

/** An error of a lock, as opposed to one of the work that it guards. */
export abstract class LockError extends Error {
  /** @internal Each class has its own. */
  declare static readonly code: LockErrorCode;
  abstract override readonly name: string;
  abstract readonly code: LockErrorCode;
  readonly key: string | undefined;
  /** Whether another try may help, for an error of the store: one that is not transient ends a wait at once. False for all other errors. */
  declare readonly transient: boolean;

  constructor(message: string, { key, cause }: LockErrorOptions = {}) {
    super(withCode(message, new.target.code), cause === undefined ? undefined : { cause });
    this.key = key;
    Object.defineProperty(this, BRAND, { value: true });
    Object.defineProperty(this, 'transient', { value: false, writable: true, configurable: true });
  }

  /** Also true of an error from another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this === LockError) return isBranded(value);
    if (!Object.hasOwn(this, 'code')) return Function.prototype[Symbol.hasInstance].call(this, value);
    return isBranded(value) && value.code === this.code;
  }
}

/** The wait timeout ended while another holder had the key. Contention, never an outage. */
export class LockTimeoutError extends LockError {
  static override readonly code = 'LOCK_TIMEOUT';
  override readonly name = 'LockTimeoutError';
  readonly code = 'LOCK_TIMEOUT';
  /** The owner id of the holder, where that is known; also of one that has released the key, while its `minHold` lasts. */
  readonly holder: string | undefined;
  /** The label of the holder, if that is a caller of this process: of a decorated method `'Class.method'`. */
  readonly holderLabel: string | undefined;
  /** @internal The keys that the message names, where it names a deadlock. */
  declare readonly deadlock: readonly string[] | undefined;

  constructor(message: string, options: LockErrorOptions & { holder?: string; holderLabel?: string; deadlock?: readonly string[] } = {}) {
    super(message, options);
    this.holder = options.holder;
    this.holderLabel = options.holderLabel;
    Object.defineProperty(this, 'deadlock', { value: options.deadlock });
  }
}

/** The wait was aborted: by the caller's `signal`, by a leader's `resign`, or because the locks are being closed. `cause` is the signal's reason. */
export class LockAbortedError extends LockError {
  static override readonly code = 'LOCK_ABORTED';
  override readonly name = 'LockAbortedError';
  readonly code = 'LOCK_ABORTED';
  /** The cause of the abort. */
  readonly reason: 'signal' | 'shutdown' | 'resigned';

  constructor(message: string, options: LockErrorOptions & { reason: LockAbortedError['reason'] }) {
    super(message, options);
    this.reason = options.reason;
  }
}

/** The lease ended before its holder did: another caller may have held the key meanwhile. */
export class LockLostError extends LockError {
  static override readonly code = 'LOCK_LOST';
  override readonly name = 'LockLostError';
  readonly code = 'LOCK_LOST';
  /** The result of the guarded method, which it returned although its lease was lost; `undefined` where no method had ended yet. */
  readonly result: unknown;
  /** The operator who took it away, and the reason; `undefined`: it was not taken away. */
  readonly revoked: Revocation | undefined;

  constructor(message: string, options: LockErrorOptions & { result?: unknown; revoked?: Revocation } = {}) {
    super(message, options);
    this.result = options.result;
    this.revoked = options.revoked;
  }
}

/** The operator who has taken a lease away with `forceRelease`, and the reason. */
export interface Revocation {
  readonly by: string | undefined;
  readonly reason: string;
}

/** The store could not be asked, or refused to answer. An outage, never contention. */
export class StoreError extends LockError {
  static override readonly code = 'LOCK_STORE';
  override readonly name = 'StoreError';
  readonly code = 'LOCK_STORE';
  /** Whether another try may help. `false` (no permission, a key of another type…) ends a wait at once. */
  override readonly transient: boolean;
  /** Whether the request was never sent, so that it was not applied. */
  readonly isUnsent: boolean;
  /** Whether the server answered that it does not do this: it is read-only or full, the user lacks a right… An outage that no broken connection shows. */
  readonly isRefusal: boolean;

  constructor(message: string, options: LockErrorOptions & { transient: boolean; isUnsent?: boolean; isRefusal?: boolean }) {
    super(message, options);
    this.transient = options.transient;
    this.isUnsent = options.isUnsent ?? false;
    this.isRefusal = options.isRefusal ?? false;
  }
}

/** Too few of the servers of a quorum answered. An outage, never contention. */
export class QuorumError extends LockError {
  static override readonly code = 'LOCK_QUORUM';
  override readonly name = 'QuorumError';
  readonly code = 'LOCK_QUORUM';
  override readonly transient = true;
  /** Answers or errors of the servers, in the order in which the servers were given. */
  readonly votes: readonly unknown[];

  constructor(message: string, options: LockErrorOptions & { votes: readonly unknown[] }) {
    super(message, options);
    this.votes = options.votes;
  }
}

/** The store does not offer this kind of lock. */
export class UnsupportedPrimitiveError extends LockError {
  static override readonly code = 'LOCK_UNSUPPORTED';
  override readonly name = 'UnsupportedPrimitiveError';
  readonly code = 'LOCK_UNSUPPORTED';
}

/** An option, a key or an argument is wrong. No retry can help. */
export class LockConfigError extends LockError {
  static override readonly code = 'LOCK_CONFIG';
  override readonly name = 'LockConfigError';
  readonly code = 'LOCK_CONFIG';
}

export function configError(problem: ConfigProblem, message: string, options?: LockErrorOptions): LockConfigError {
  return new LockConfigError(withCode(message, `LOCK_CONFIG_${problem}`), options);
}

/** The error with which a driver rejected, as a {@link LockError}. Any other error is a fault of the driver, which no retry can help. */
export function asStoreError(cause: unknown, key: string): LockError {
  if (cause instanceof StoreError && cause.key === undefined) return ownCopyOf(cause, key);
  if (cause instanceof LockError) return cause;
  return new StoreError(`The store failed for "${key}": ${messageOf(cause)}`, { key, cause, transient: false });
}

/** The message of an error, without its code, to be a part of another. That of a host with several addresses says nothing itself. */
export function messageOf(cause: unknown): string {
  const { message, errors, code } = Object(cause) as Partial<AggregateError & { code: string }>;
  const text = message || (errors as unknown[] | undefined)?.map(messageOf).join(', ') || code || String(message ?? cause);
  return text.replace(CODE, '');
}

/** Several callers may wait in the same outage. Each of them rejects with its own error. */
export function ownCopyOf(error: LockError, key = error.key): LockError {
  const { message, cause } = error;
  if (error instanceof QuorumError) return new QuorumError(message, { key, cause, votes: error.votes });
  if (error instanceof LockConfigError) return new LockConfigError(message, { key, cause });
  if (!(error instanceof StoreError)) return error;
  const { transient, isUnsent, isRefusal } = error;
  return new StoreError(message, { key, cause, transient, isUnsent, isRefusal });
}

/** The refusal of the server, or of one of a quorum; `undefined`: there was none. */
export function refusalIn(cause: unknown): StoreError | undefined {
  const errors = cause instanceof QuorumError ? cause.votes : [cause];
  return errors.find((each): each is StoreError => each instanceof StoreError && each.isRefusal);
}

/** Puts the caller's label before the message: the stack of an error that ends a wait shows no frame of the program. */
export function nameCaller(error: LockError, label: string): void {
  // The stack is written when it is read first, with the message of that time.
  const { message, stack } = error;
  error.message = `${label}: ${message}`;
  error.stack = stack?.replace(message, () => error.message);
}

/** The holder of a key. */
export interface Holder {
  readonly owner: string;
  /** Only of a caller of this process: its label, and when it got the key, on the monotonic clock. */
  readonly label: string | undefined;
  readonly since: number | undefined;
  /** If it has released the key, which its minHold keeps: until when, on the monotonic clock. */
  readonly keptUntil: number | undefined;
}

/**
 * The caller's wait timeout is over, and the key is taken.
 *
 * @param deadlock the key, that for which its holder waits, and so on; the caller holds the last one.
 */
export function timedOut(
  key: string,
  waited: number,
  { owner, label, since, keptUntil }: Partial<Holder> = {},
  deadlock?: readonly string[],
): LockTimeoutError {
  const note = [label, since === undefined ? undefined : 'this process'].filter(Boolean).join(', ');
  const kept = keptUntil && `kept by its minHold for ${duration(Math.max(0, keptUntil - now()))} more: ${owner} has released it`;
  const by = kept ?? (owner === undefined ? 'taken' : `held by ${owner}${note && ` (${note})`}`);
  const message = `Could not acquire "${key}" within ${Math.round(waited)} ms: it is ${by}.${deadlock ? sayDeadlock(deadlock) : ''}`;
  return new LockTimeoutError(message, { key, holder: owner, holderLabel: label, deadlock });
}

function sayDeadlock([first, ...others]: readonly string[]): string {
  const waits = others.map((key, index) => `${index === 0 ? `the holder of "${first}"` : 'its holder'} waits for "${key}"`);
  const chain = waits.length === 0 ? 'this caller holds it itself' : `${waits.join(', ')}, which this caller holds`;
  return ` This is a deadlock: ${chain}.`;
}

/** The caller's wait timeout and one `requestTimeout` more are over, and the store has not answered. */
export function unanswered(key: string): StoreError {
  return new StoreError(`The store did not answer in time for "${key}".`, { key, transient: true });
}

export function abortedBy(signal: AbortSignal, key: string): LockAbortedError {
  return new LockAbortedError(`The wait for "${key}" was aborted.`, { key, reason: 'signal', cause: signal.reason });
}

/** For calls that would have to wait after `stopWaiting()`. */
export function stopped(key: string, cause?: LockError): LockAbortedError {
  return new LockAbortedError(`Cannot wait for "${key}": the locks are being closed.`, { key, reason: 'shutdown', cause });
}

/** For calls under way when the locks are closed. */
export function closed(key: string): LockAbortedError {
  return new LockAbortedError(`The call for "${key}" was called off: the locks are closed.`, { key, reason: 'shutdown' });
}
