import { decorate, type LockDecorator } from './distributed-lock.decorator.js';
import type { LeaderOnlyOptions } from '../distributed-lock.options.js';

/**
 * Runs the method only on the leader of an election. On other instances a call resolves to `undefined` at once, an Observable completes, and an
 * iterable ends. An instance campaigns from its bootstrap to its shutdown, once for each name and store.
 *
 * The method runs under the lease of the term, which `currentLease()` returns. If leadership is lost while the method runs, the signal of the
 * lease aborts, and the call rejects with {@link LockLostError} if the method succeeds nevertheless.
 *
 * A call before the app's bootstrap rejects with {@link LockConfigError}.
 *
 * @param election the name; the key is `<name>-leader`.
 * @param options default: those of the module.
 * @throws {LockConfigError} when the class is defined, if an option is wrong or the method cannot wait; at boot, if methods of one election give
 * different options for it.
 */
export function LeaderOnly(election: string, options?: LeaderOnlyOptions): LockDecorator;
export function LeaderOnly(...args: unknown[]): LockDecorator {
  const [election, options] = args;
  return decorate('leader', args, options, election);
}
