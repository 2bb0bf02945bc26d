import type { HeldLease } from '../core/holding/held-lease.js';
import { LockConfigError } from '../core/model/errors.js';
import { processWide } from '../core/util/process-wide.js';
import { heldPartOf, partsOf, type FenceableLease } from './fenced-keys.js';

/** A transaction that was guarded under a lease. */
interface Guarded {
  readonly isOpen: () => boolean;
  /** Whose stack shows where it was guarded. */
  readonly place: Error;
  readonly isFault: boolean;
}

const guarded = processWide('guarded-transactions', () => new WeakMap<HeldLease, Guarded[]>());

/** Notices when the lock is released while this transaction is open. */
export function watchTransaction(lease: FenceableLease, isOpen: () => boolean, place: Error, isFault: boolean): void {
  for (const part of partsOf(lease)) {
    const held = heldPartOf(part);
    if (held) watch(held, [{ isOpen, place, isFault }]);
  }
}

function watch(lease: HeldLease, added: readonly Guarded[]): void {
  const known = guarded.get(lease);
  // A lease may outlive many transactions.
  guarded.set(lease, [...(known ?? []).filter((transaction) => transaction.isOpen()), ...added]);
  if (!known) lease.onRelease(() => released(lease));
}

/** @throws {LockConfigError} if one of its guards asked for that: the release then rejects with it, and takes place all the same. */
function released(lease: HeldLease): void {
  const { turn } = lease;
  const open = (guarded.get(lease) ?? []).filter((transaction) => transaction.isOpen());
  // Whose lease was lost, or taken away at a shutdown, did not release it too early.
  if (open.length === 0 || lease.loss !== undefined) return;
  const outer = turn.leases.find((other) => other !== lease);
  if (outer) return watch(outer, open); // a re-entrant call: the key is still held
  for (const transaction of open) report(lease, transaction);
  const fault = open.find(({ isFault }) => isFault);
  if (fault) throw new LockConfigError(messageFor(lease), { key: lease.key, cause: fault.place });
}

function report(lease: HeldLease, { place }: Guarded): void {
  const { turn, fencingToken, key } = lease;
  const { events } = turn.tenure.runtime;
  const { event } = turn;
  const guardedAt = linesOf(place);
  const releasedAt = linesOf(placeOf(lease, 'release'));
  const context = { key, label: event.label, owner: event.owner, token: fencingToken, once: `released early ${event.label ?? key}` };
  events.warn(() => `${messageFor(lease)}\n  The transaction was guarded\n${guardedAt}\n  The lock was released\n${releasedAt}`, context);
  events.emit('releasedEarly', Object.assign(event, { fencingToken, guardedAt, releasedAt }));
}

function messageFor({ key, turn: { label } }: HeldLease): string {
  const subject = `"${key}" was released while a transaction was open that it guards: the next holder does not see what that writes.`;
  return `${label === undefined ? '' : `${label}: `}${subject} Commit first: the lock belongs around the transaction.`;
}

/** Its stack leads to the call of this method. */
export function placeOf<Name extends string>(self: Record<Name, (...args: never[]) => unknown>, method: Name): Error {
  const place = new Error();
  Error.captureStackTrace(place, self[method]);
  return place;
}

function linesOf({ stack = '' }: Error): string {
  return stack.split('\n').slice(1).join('\n');
}
