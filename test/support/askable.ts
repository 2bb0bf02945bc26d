import type { Locks } from 'nestjs-distributed-lock/core';

/** Opens the inbox of a process before anything lasts in it, so that operators can ask it. */
export function askable(locks: Locks): Locks {
  void locks.store.bus?.open(() => undefined);
  return locks;
}
