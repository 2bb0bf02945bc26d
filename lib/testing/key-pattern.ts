import { nearest } from '../core/model/check-options.js';

/** A key, with its namespace as events have it; or a pattern of keys. `'*'`: every key. */
export type KeyPattern = string | RegExp;

/** Whether the key is meant. */
export function isMeant(pattern: KeyPattern, key: string): boolean {
  if (typeof pattern === 'string') return pattern === '*' || pattern === key;
  return key.search(pattern) >= 0;
}

/** For messages. */
export function shownKey(pattern: KeyPattern): string {
  return typeof pattern === 'string' ? `"${pattern}"` : String(pattern);
}

/** `; the nearest key is "…"`, if one of them is near. */
export function nearestKey(pattern: KeyPattern, keys: Iterable<string>): string {
  const near = typeof pattern === 'string' ? nearest(pattern, [...new Set(keys)]) : undefined;
  return near === undefined ? '' : ` The nearest key is "${near}".`;
}
