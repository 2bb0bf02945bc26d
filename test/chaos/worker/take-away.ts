import type { Locks } from '../../../lib/core.js';
import { describe, outcomeOf } from './outcome.js';
import type { Context } from './context.js';
import { KEYS } from './keys.js';

/** Those whose leases are short: for longer than the longest of them, a key that was taken by force is not given to anybody. */
const SHORT = [...KEYS.mutex, ...KEYS.readWrite].filter((key) => key.includes('quick'));
const KEEP_FOR = 1_000;

/**
 * An operator takes a key away. Its holder is asked first, or may go on for as long as its lease lasts, in which nobody else gets the key: so no operator
 * frees one that is kept.
 */
export async function takeAway({ random, history, nextId }: Context, locks: Locks): Promise<void> {
  const key = random.pick(SHORT);
  const id = nextId();
  const grace = random.pick([0, 50, 300]);
  history.write({ e: 'forcing', id, key, grace, keepFor: KEEP_FOR });
  const taken = async (): Promise<string> => {
    const report = await locks.inspect(key);
    const holders = report.holders.filter(({ phase }) => phase === 'held');
    if (holders.length === 0) return 'free';
    const { owner } = random.pick(holders);
    return (await locks.forceRelease(key, { owner, grace, keepFor: KEEP_FOR, reason: 'it is wanted elsewhere' })).outcome;
  };
  const result = await taken().catch((error: unknown) => `${outcomeOf(error)}: ${describe(error)}`);
  history.write({ e: 'forced', id, result });
}
