/** The decorators by the kind of lock that they take, as messages name them. */
export const DECORATORS = {
  mutex: '@DistributedLock()',
  read: '@ReadLock()',
  write: '@WriteLock()',
  semaphore: '@Semaphore()',
  leader: '@LeaderOnly()',
} as const;

export type LockKind = keyof typeof DECORATORS;
