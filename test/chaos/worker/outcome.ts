import { inspect } from 'node:util';
import {
  LockAbortedError,
  LockConfigError,
  LockError,
  LockLostError,
  LockTimeoutError,
  QuorumError,
  StoreError,
} from '../../../lib/core.js';
import type { Outcome } from '../history/entry.js';

const INTERNAL = ['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'AssertionError'];

/** The meaning of a rejection to a caller. An error that is no LockError, or that an internal one caused, is a defect of the library. */
export function outcomeOf(error: unknown): Outcome {
  if (!(error instanceof LockError) || isInternal(error)) return 'internal';
  if (error instanceof LockTimeoutError) return 'timeout';
  if (error instanceof LockAbortedError) return error.reason === 'signal' ? 'aborted' : error.reason;
  if (error instanceof LockLostError) return 'lost';
  if (error instanceof StoreError) return error.transient ? 'store' : 'final';
  if (error instanceof QuorumError) return 'store';
  return error instanceof LockConfigError ? 'config' : 'internal';
}

function isInternal(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) if (INTERNAL.includes(cause.name)) return true;
  return false;
}

export function describe(error: unknown): string {
  const parts: string[] = [];
  for (let cause = error; cause !== undefined && parts.length < 4; cause = (cause as { cause?: unknown })?.cause) {
    parts.push(cause instanceof Error ? `${cause.name}: ${cause.message}` : inspect(cause));
  }
  const stack = outcomeOf(error) === 'internal' && error instanceof Error ? `\n${error.stack}` : '';
  return parts.join(' <- ') + stack;
}
