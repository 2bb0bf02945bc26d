import { configError } from '../../core/model/errors.js';
import { canonicalForm, sha256 } from './canonical-form.js';

export { LOCK_KEY } from './canonical-form.js';

const DIGEST_LENGTH = 32;
const PATH = /^(0|[1-9]\d*)(\.[^.]+)*$/;

/**
 * The part that `paramLock` adds to a key: 32 hex digits (128 bits of SHA-256), the same for equal values.
 *
 * @param paths `true`: every argument takes part; else the values at these paths, in this order
 * @throws {LockConfigError} when an argument has no stable form or a path leads nowhere
 */
export function digestArguments(args: readonly unknown[], paths: true | readonly string[]): string {
  const text = paths === true ? canonicalForm(withoutMissing(args)) : paths.map((path) => canonicalForm(args, path.split('.'))).join('');
  return sha256(text).slice(0, DIGEST_LENGTH);
}

/**
 * The part that a `key` function adds to a key: what it returned, each part percent-encoded and joined by `-`.
 *
 * @throws {LockConfigError} when it returned no string, finite number or bigint, and no list of them, or only empty strings
 */
export function encodeKeyParts(parts: unknown): string {
  // Array.from and not map, because map skips holes.
  const encoded = Array.isArray(parts) ? Array.from(parts, (part, index) => encodePart(part, ` at ${index}`)) : [encodePart(parts, '')];
  if (encoded.every((part) => part === '')) throw configError('KEY', 'key returned nothing to lock by: an empty string or an empty list');
  return encoded.join('-');
}

/** The expectation that `paramLock` does not meet, unless it is a list of at least one `<argument index>` or `<argument index>.<property>.<property>`. */
export function checkPaths(paths: unknown): string | undefined {
  const isPath = (path: unknown): boolean => typeof path === 'string' && PATH.test(path);
  // Spread, because `every` skips holes.
  if (Array.isArray(paths) && paths.length > 0 && [...(paths as unknown[])].every(isPath)) return undefined;
  return "true, false or a list of paths such as ['0.id', '1']: the index of an argument, and properties in it";
}

function withoutMissing(args: readonly unknown[]): readonly unknown[] {
  return args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
}

function encodePart(part: unknown, where: string): string {
  if (typeof part !== 'string' && typeof part !== 'bigint' && !Number.isFinite(part)) {
    if (part instanceof Promise) part.catch(() => undefined);
    throw configError(
      'KEY',
      `key returned ${describe(part)}${where}; it must return a string, a finite number, a bigint or a list of these`,
    );
  }
  try {
    return encodeURIComponent(String(part)).replaceAll('-', '%2D'); // `-` joins the parts, so none may hold one
  } catch (cause) {
    throw configError('KEY', `key returned half a surrogate pair${where}, which has no encoding`, { cause });
  }
}

function describe(part: unknown): string {
  if (part === null || typeof part === 'undefined' || typeof part === 'number') return String(part);
  if (Array.isArray(part)) return 'a list';
  if (typeof part !== 'object') return `a ${typeof part}`;
  return typeof (part as { then?: unknown }).then === 'function' ? 'a promise' : 'an object';
}
