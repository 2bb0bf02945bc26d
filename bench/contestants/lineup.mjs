// The contestants, in the order of the tables.
//
// - `renews`: a held lock outlives its ttl without the caller's doing
// - `jitters`: its waiters do not all try at the same time
// - `shares`: its kinds of lock that several callers hold at a time
// - `only`: the tables that it takes part in, by the beginnings of their ids
// - `quick`: the workloads in which it is measured with `--quick`, because a goal there names it; ours is in all

export const OURS = 'ours';
export const OURS_IGNORING = "ours, using with onLost: 'ignore'";
export const OURS_AS_MUTEX = 'ours, a mutex for all';
export const RAW = 'raw ioredis';

export const lineup = [
  { name: OURS, file: 'ours.mjs', renews: true, shares: ['read/write', 'permits'] },
  { name: 'ours, using', file: 'ours.mjs', as: 'using', only: ['w1-lone'], quick: ['w1'] },
  { name: OURS_IGNORING, file: 'ours.mjs', as: 'ignoring', only: ['w1-lone'], quick: ['w1'] },
  { name: OURS_AS_MUTEX, file: 'ours.mjs', as: 'mutex', shares: ['read/write'], only: ['w7'], quick: ['w7'] },
  { name: RAW, file: 'raw.mjs', renews: true, jitters: true, quick: ['w1', 'w2', 'w5'] },
  { name: 'raw ioredis with a token', file: 'raw-fenced.mjs', jitters: true, only: ['w1', 'w2'] },
  { name: 'redlock', file: 'redlock.mjs', renews: true, jitters: true, quick: ['w1'] },
  { name: '@sesamecare-oss/redlock', file: 'sesamecare.mjs', renews: true, jitters: true },
  { name: 'redis-semaphore', file: 'redis-semaphore.mjs', renews: true, shares: ['permits'], quick: ['w4', 'w8'] },
  { name: 'redlock-universal', file: 'redlock-universal.mjs', renews: true },
  { name: 'murlock', file: 'murlock.mjs', quick: ['w1'] },
  { name: '@verrou/core', file: 'verrou.mjs', quick: ['w4'] },
];

/** Locks nothing: a workload that does not catch it checks nothing. */
export const impostor = { name: 'no lock at all', file: 'no-lock.mjs', renews: true, shares: ['read/write', 'permits'] };

/** Another library. */
export const isPeer = (name) => !/^(ours|raw ioredis|no lock)\b/.test(name);

/**
 * Milliseconds between two tries of a contestant that polls: from 10, the shortest default among them (others: 100, 200, 250), to what leaves the
 * process some time for work when many wait. Without jitter all waiters try in one burst, so longer pauses only make it worse.
 */
export function retryDelayFor(callers, { jitters }) {
  const delay = Math.max(10, Math.round(callers / 25));
  return jitters ? delay : Math.min(delay, 40);
}
