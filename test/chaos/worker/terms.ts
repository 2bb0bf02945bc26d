import type { AcquireOptions, Locks } from '../../../lib/core.js';
import type { Question } from './call.js';
import type { Context } from './context.js';

/** Lease lengths by the key's ending, so that one knows how long a dead holder may keep a key. */
const KEY_TIMEOUTS = { quick: [200, 300, 500, 800], slow: [1_000, 2_000, 3_000, 5_000], mixed: [300, 1_000, 2_500] };

export type Terms = Required<Pick<AcquireOptions, 'keyTimeout' | 'retryInterval' | 'waitTimeout' | 'fair' | 'minHold' | 'renew'>> &
  Pick<AcquireOptions, 'maxHold'>;

/** Options of one call, chosen at random. */
export function chooseTerms({ random }: Context, key: string): Terms {
  const pace = /quick|slow/.exec(key)?.[0] as 'quick' | 'slow' | undefined;
  const keyTimeout = random.pick(KEY_TIMEOUTS[pace ?? 'mixed']);
  const minHold = random.chance(0.06) ? random.int(5, 150) : 0;
  return {
    keyTimeout,
    retryInterval: random.pick([20, 100, 100, 500, 1_000]),
    waitTimeout: random.pick([0, 50, 400, 2_000, 5_000, 5_000, 20_000, Infinity]),
    fair: random.chance(0.25),
    minHold,
    renew: !random.chance(0.06),
    maxHold: random.chance(0.06) ? minHold + random.int(20, 600) : undefined,
  };
}

/** The entry of the history for a call with these options. */
export function question(
  kind: Question['kind'],
  keys: string[],
  mode: Question['mode'],
  terms: Omit<Terms, 'renew'>,
  locks: Locks,
): Question {
  const { keyTimeout, retryInterval, waitTimeout, fair, minHold, maxHold = null } = terms;
  const patience = waitTimeout === Infinity ? null : waitTimeout;
  return { kind, keys, mode, patience, requestTimeout: locks.store.requestTimeout, keyTimeout, retryInterval, fair, minHold, maxHold };
}
