import type { HeldLease } from '../core/holding/held-lease.js';
import { configError, UnsupportedPrimitiveError } from '../core/model/errors.js';
import type { Lease } from '../core/model/lease.js';

/** The part of a lease that a guard needs. */
export type FenceableLease = Pick<Lease, 'key' | 'fencingToken' | 'assertHeld'>;

/**
 * The keys and tokens of a lease, sorted, so that two multi-leases never wait for each other's rows.
 *
 * @throws {LockConfigError} for a lease whose tokens cannot tell who is stale.
 * @throws {UnsupportedPrimitiveError} for a lease without a token.
 */
export function fencedKeysOf(lease: FenceableLease, key: string | undefined, isShared: boolean): { key: string; token: number }[] {
  const leases = leasesIn(lease);
  const several = `The fence guard cannot give the ${leases.length} keys of the multi-lease "${lease.key}" one name: leave out "key".`;
  if (key !== undefined && leases.length > 1) throw configError('FENCE', several);
  const keys = leases.map((part) => {
    checkKind(part, isShared);
    const { fencingToken: token } = part;
    if (token === null) {
      const message = `The store gives no fencing token for "${part.key}": the fence guard needs one.`;
      throw new UnsupportedPrimitiveError(message, { key: part.key });
    }
    return { key: key ?? part.key, token };
  });
  return keys.sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** A lease, or those of a multi-lease. */
export function leasesIn(lease: FenceableLease): readonly FenceableLease[] {
  return 'leases' in lease ? (lease.leases as readonly FenceableLease[]) : [lease];
}

/** The engine's own part of a lease. By its shape, because two copies of this package can meet in one process. */
export function heldPartOf(lease: FenceableLease): HeldLease | undefined {
  return 'turn' in lease && 'onRelease' in lease ? (lease as unknown as HeldLease) : undefined;
}

function checkKind(lease: FenceableLease, isShared: boolean): void {
  const { key } = lease;
  const tenure = heldPartOf(lease)?.turn.tenure;
  if (tenure?.kind === 'read' && !isShared) {
    const message = `"${key}" is held by its read lock: use { shared: true }, or take the write lock if the transaction writes.`;
    throw configError('FENCE', message, { key });
  }
  if (tenure?.kind === 'semaphore' && tenure.share?.permits !== 1) {
    const message = `"${key}" is a semaphore of ${tenure.share?.permits} permits: several of its tokens are valid at a time, so a fence guard cannot tell which is stale.`;
    throw configError('FENCE', message, { key });
  }
}
