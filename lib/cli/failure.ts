import { LockConfigError, LockError, StoreError } from '../core/model/errors.js';

/** Exit codes; 75 and 76 are those of `run`, which else has the child's own. */
export const EXIT = { ok: 0, fault: 1, usage: 2, store: 3, free: 4, changed: 5, findings: 6, conflict: 75, lost: 76 } as const;

/** Ends the program with an exit code and one line. */
export class Failure extends Error {
  constructor(
    readonly exitCode: number,
    message: string,
    readonly code = 'USAGE',
  ) {
    super(message);
  }
}

export function usage(message: string): Failure {
  return new Failure(EXIT.usage, message);
}

/** The exit code and the line for an error. Passwords are not shown. */
export function failureOf(error: unknown): Failure {
  if (error instanceof Failure) return new Failure(error.exitCode, withoutPasswords(error.message), error.code);
  const { message = String(error), cause } = Object(error) as { message?: string; cause?: unknown };
  const isKnown = error instanceof StoreError && !error.isRefusal && cause instanceof Error;
  // The code stays at the end, and what is said already is not said again.
  const reason = isKnown ? cause.message.replace(/ \[LOCK_\w+\]$/, '') : '';
  const text = withoutPasswords(message.includes(reason) ? message : message.replace(/(?= \[LOCK_\w+\]$)|$/, () => ` ${reason}`));
  const name = missingPackage(error) ?? missingPackage(cause);
  if (name !== undefined) {
    const advice = `This store needs the package ${name}, which is not installed: npm install ${name}`;
    return new Failure(EXIT.store, advice, 'MISSING_PACKAGE');
  }
  if (error instanceof LockConfigError) return new Failure(EXIT.usage, text, error.code);
  if (error instanceof LockError) return new Failure(EXIT.store, text, error.code);
  return new Failure(EXIT.fault, error instanceof Error && error.stack !== undefined ? withoutPasswords(error.stack) : text, 'FAULT');
}

/** A password ends with the last `@` of its word: people forget to encode one that it has. */
export function withoutPasswords(text: string): string {
  const inUrls = text.replaceAll(/(\b[a-z][a-z+]*:\/\/[^\s:/]*):\S*@/gi, '$1:***@');
  return inUrls.replaceAll(/([?&][\w-]*(?:password|passwd|secret|token)\w*=)[^&\s'"]*/gi, '$1***');
}

/** The package that a failed import names. A file is not a package. */
function missingPackage(error: unknown): string | undefined {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  if (code !== 'ERR_MODULE_NOT_FOUND' && code !== 'MODULE_NOT_FOUND') return undefined;
  return /Cannot find (?:package|module) '([^'./][^':]*)'/.exec(String(message))?.[1];
}
