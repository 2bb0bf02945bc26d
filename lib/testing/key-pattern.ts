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
