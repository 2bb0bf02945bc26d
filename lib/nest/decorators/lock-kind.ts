/** The names of the decorators in messages, by the kind of lock that they take. */
export const DECORATORS = {
  mutex: '@DistributedLock()',
  read: '@ReadLock()',
  write: '@WriteLock()',
  semaphore: '@Semaphore()',
  leader: '@LeaderOnly()',
} as const;

export type LockKind = keyof typeof DECORATORS;
