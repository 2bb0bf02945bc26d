/** The keys of all loads: `quick` and `slow` say how long leases are. */
export const KEYS = {
  mutex: ['mutex-quick-a', 'mutex-quick-b', 'mutex-slow-a', 'mutex-slow-b'],
  readWrite: ['rw-quick', 'rw-slow'],
  semaphore: ['sem-quick', 'sem-slow'],
  multi: ['multi-mixed-a', 'multi-mixed-b', 'multi-mixed-c'],
  leader: ['chief-leader'],
};

/** The beginning of the name of each latch. */
export const LATCH = 'latch-';

const ALL = Object.values(KEYS).flat();

/** One of them, by a number from 0 to 1. */
export const keyAt = (extent: number): string => ALL[Math.floor(extent * ALL.length)]!;

/** A pattern for each, that matches the key with whatever stands before it and what belongs to it. */
export const PATTERNS: readonly string[] = [...ALL, LATCH].map((key) => `*${key}*`);
