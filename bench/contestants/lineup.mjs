// Who takes part, in the order of the tables. `renews`: a lock that is held outlives its ttl without the caller's doing. `jitters`: no two waiters
// try at the same time for long. `only`: the workloads that it takes part in, if not all. `shares`: the kinds of lock
// it has that several hold at a time.

export const OURS = 'ours';
export const RAW = 'raw ioredis';
export const RAW_FENCED = 'raw ioredis with a token';

export const lineup = [
  { name: OURS, file: 'ours.mjs', renews: true, shares: ['read/write', 'permits'] },
  { name: RAW, file: 'raw.mjs', renews: false, jitters: true },
  { name: RAW_FENCED, file: 'raw-fenced.mjs', renews: false, jitters: true, only: ['w1', 'w2'] },
  { name: 'ours, a mutex for all', file: 'ours-mutex.mjs', renews: true, shares: ['read/write'], only: ['w7'] },
  { name: 'redlock', file: 'redlock.mjs', renews: true, jitters: true },
  { name: '@sesamecare-oss/redlock', file: 'sesamecare.mjs', renews: true, jitters: true },
  { name: 'redis-semaphore', file: 'redis-semaphore.mjs', renews: true, shares: ['permits'] },
  { name: 'redlock-universal', file: 'redlock-universal.mjs', renews: true },
  { name: 'murlock', file: 'murlock.mjs', renews: false },
  { name: '@verrou/core', file: 'verrou.mjs', renews: false },
];

/** Locks nothing: it must be caught in every workload, or the checks are worth nothing. */
export const impostor = { name: 'no lock at all', file: 'no-lock.mjs', renews: true, shares: ['read/write', 'permits'] };

export const peers = (tableRows) => tableRows.filter(({ contestant }) => ![OURS, RAW, RAW_FENCED].includes(contestant));

/**
 * Milliseconds between two tries of those who poll: from 10, the shortest default among them (others: 100, 200, 250), to what leaves the process
 * some time for work when many wait. Without jitter all try in one burst, so that longer pauses only make it worse.
 */
export function retryDelayFor(callers, { jitters }) {
  const delay = Math.max(10, Math.round(callers / 25));
  return jitters ? delay : Math.min(delay, 40);
}
