import type { Locks } from '../../../lib/core.js';
import { Call } from './call.js';
import type { Context } from './context.js';
import { KEYS } from './keys.js';
import { hold, writeSection } from './section.js';
import { chooseTerms, question } from './terms.js';
import { withAbort } from './with-abort.js';

/** Takes two or three keys together, named in any order, or one of them alone. */
export async function callMulti(context: Context, locks: Locks): Promise<void> {
  const { random } = context;
  const given = random.shuffle(KEYS.multi).slice(0, random.pick([1, 2, 2, 3]));
  const terms = chooseTerms(context, given[0]!);
  // The leases come in the order of their keys.
  const call = new Call(context, question('multi', [...given].sort(), 'alone', terms, locks));
  await withAbort(context, call, terms, (options) => hold(context, locks.multiLock(given), writeSection, call, options));
}
