import type { FenceableLease } from 'nestjs-distributed-lock/fence-guard';

/** A lease that is held as far as it knows, with this token. */
export function leaseOf(key: string, fencingToken: number | null): FenceableLease {
  return { key, fencingToken, assertHeld: () => undefined };
}
