import type { Locks } from '../../../lib/core.js';
import { Call } from './call.js';
import type { Context } from './context.js';
import { hold, shareSection } from './section.js';
import { chooseTerms, question } from './terms.js';
import { withAbort } from './with-abort.js';

/** The number of permits of the second key changes with each request, so only the largest number is a limit. */
const KEYS = { 'sem-quick': [3], 'sem-slow': [2, 4, 5] };

/** Takes some permits of a semaphore. */
export async function callSemaphore(context: Context, locks: Locks): Promise<void> {
  const { random } = context;
  const key = random.pick(Object.keys(KEYS) as (keyof typeof KEYS)[]);
  const permits = random.pick(KEYS[key]);
  const count = random.int(1, Math.min(permits, 3));
  const terms = chooseTerms(context, key);
  const asked = { ...question('semaphore', [key], 'permits', terms, locks), count, permits: Math.max(...KEYS[key]) };
  const call = new Call(context, asked);
  await withAbort(context, call, terms, (options) => hold(context, locks.semaphore(key, { permits, count }), shareSection, call, options));
}
