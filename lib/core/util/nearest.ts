/** Names of these options in other libraries, or by habit. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ttl: 'keyTimeout',
  expire: 'keyTimeout',
  expiry: 'keyTimeout',
  duration: 'keyTimeout',
  leaseTime: 'keyTimeout',
  leaseTimeout: 'keyTimeout',
  lockTimeout: 'keyTimeout',
  timeout: 'waitTimeout',
  waitTime: 'waitTimeout',
  acquireTimeout: 'waitTimeout',
  retries: 'retryCount',
  retry: 'retryCount',
  attempts: 'retryCount',
  retryDelay: 'retryInterval',
  keyPrefix: 'namespace',
  name: 'value',
  limit: 'permits',
};

/** The known name that a wrong one was most likely meant to be, if any is close. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const other = OTHER_NAMES[name];
  if (other !== undefined && known.includes(other)) return other;
  const farthest = Math.max(1, Math.floor(name.length / 3));
  let best: string | undefined;
  let least = farthest + 1;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** How many characters must be inserted, deleted or replaced (Levenshtein). */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
