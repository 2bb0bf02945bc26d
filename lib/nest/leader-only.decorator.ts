import { decorate, type LockDecorator } from './distributed-lock.decorator.js';
import type { LeaderOnlyOptions } from './distributed-lock.options.js';

/**
 * Runs the method on the leader of an election, and nowhere else: on other instances a call resolves to `undefined` at once, an Observable
 * completes, an iterable ends. An instance stands for election from its bootstrap to its shutdown, once for each name and store.
 *
 * The method runs under the lease of the term: `currentLease()` is it. Where leadership is lost while the method runs, its signal aborts, and the
 * call rejects with {@link LockLostError} if the method succeeds all the same.
 *
 * A call before the app's bootstrap rejects with {@link LockConfigError}.
 *
 * @param election the name; the key is `<name>-leader`.
 * @param options default: the module's, else `keyTimeout` 1000 ms.
 * @throws {LockConfigError} when the class is defined, if an option is wrong or the method cannot wait; at boot, if methods of one election give
 * different options for it.
 */
export function LeaderOnly(election: string, options?: LeaderOnlyOptions): LockDecorator;
export function LeaderOnly(...args: unknown[]): LockDecorator {
  const [election, options] = args;
  return decorate('leader', args, options, election);
}
