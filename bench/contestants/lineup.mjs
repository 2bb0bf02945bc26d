// Who takes part, in the order of the tables. `renews`: a lock that is held outlives its ttl without the caller's doing. `jitters`: no two waiters
// try at the same time for long.

export const OURS = 'ours';
export const RAW = 'raw ioredis';

export const lineup = [
  { name: OURS, file: 'ours.mjs', renews: true },
  { name: RAW, file: 'raw.mjs', renews: false, jitters: true },
  { name: 'redlock', file: 'redlock.mjs', renews: true, jitters: true },
  { name: '@sesamecare-oss/redlock', file: 'sesamecare.mjs', renews: true, jitters: true },
  { name: 'redis-semaphore', file: 'redis-semaphore.mjs', renews: true },
  { name: 'redlock-universal', file: 'redlock-universal.mjs', renews: true },
  { name: 'murlock', file: 'murlock.mjs', renews: false },
  { name: '@verrou/core', file: 'verrou.mjs', renews: false },
];

/** Locks nothing: it must be caught in every workload, or the checks are worth nothing. */
export const impostor = { name: 'no lock at all', file: 'no-lock.mjs', renews: true };

export const peers = (tableRows) => tableRows.filter(({ contestant }) => contestant !== OURS && contestant !== RAW);

/**
 * Milliseconds between two tries of those who poll: from 10, the shortest default among them (others: 100, 200, 250), to what leaves the process
 * some time for work when many wait. Without jitter all try in one burst, so that longer pauses only make it worse.
 */
export function retryDelayFor(callers, { jitters }) {
  const delay = Math.max(10, Math.round(callers / 25));
  return jitters ? delay : Math.min(delay, 40);
}
