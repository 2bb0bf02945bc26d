import type { HeldLease } from '../core/holding/held-lease.js';
import { configError } from '../core/model/errors.js';
import { heldPartOf, leasesIn, type FenceableLease } from './fenced-keys.js';

/** A transaction that was guarded under a lease. */
export interface Guarded {
  readonly isOpen: () => boolean;
  /** An error whose stack shows where it was guarded. */
  readonly calledAt: Error;
  /** Whether the release rejects while it is open. */
  readonly isFault: boolean;
}

/** Each copy of this package watches the transactions that it has guarded. */
const guarded = new WeakMap<HeldLease, readonly Guarded[]>();

/** Notices when the lock is released while this transaction is open. */
export function watchTransaction(lease: FenceableLease, transaction: Guarded): void {
  for (const part of leasesIn(lease)) {
    const held = heldPartOf(part);
    if (held) watch(held, [transaction]);
  }
}

function watch(lease: HeldLease, added: readonly Guarded[]): void {
  if (!guarded.has(lease)) lease.onRelease(() => released(lease));
  // A lease may outlive many transactions.
  guarded.set(lease, [...openUnder(lease), ...added]);
}

function openUnder(lease: HeldLease): readonly Guarded[] {
  return (guarded.get(lease) ?? []).filter(({ isOpen }) => isOpen());
}

/** @throws {LockConfigError} if one of its guards asked for that: the release then rejects with it, and takes place all the same. */
function released(lease: HeldLease): void {
  const open = openUnder(lease);
  // A holder whose lease was lost, or taken away at a shutdown, did not release it too early.
  if (open.length === 0 || lease.loss !== undefined) return;
  const outer = lease.turn.leases.find((other) => other !== lease);
  if (outer) return watch(outer, open); // a re-entrant call: the key is still held
  for (const transaction of open) report(lease, transaction);
  const fault = open.find(({ isFault }) => isFault);
  if (fault) throw configError('FENCE', messageFor(lease), { key: lease.key, cause: fault.calledAt });
}

function report(lease: HeldLease, { calledAt }: Guarded): void {
  const { turn, fencingToken, key } = lease;
  const { event } = turn;
  const { events } = turn.tenure.runtime;
  const guardedAt = linesOf(calledAt);
  const releasedAt = linesOf(stackOf(lease, 'release'));
  const context = { key, label: event.label, owner: event.owner, token: fencingToken, once: `released early ${event.label ?? key}` };
  const line = `${messageFor(lease)}\n  The transaction was guarded\n${guardedAt}\n  The lock was released\n${releasedAt}`;
  events.warn('NDL_RELEASED_EARLY', line, context);
  events.emit('releasedEarly', Object.assign(event, { fencingToken, guardedAt, releasedAt }));
}

function messageFor({ key, turn: { label } }: HeldLease): string {
  const subject = `"${key}" was released while a transaction was open that it guards: the next holder does not see what that writes.`;
  return `${label === undefined ? '' : `${label}: `}${subject} Commit first: the lock belongs around the transaction.`;
}

/** An error whose stack leads to the call of this method. */
export function stackOf<Name extends string>(self: Record<Name, (...args: never[]) => unknown>, method: Name): Error {
  const calledAt = new Error();
  Error.captureStackTrace(calledAt, self[method]);
  return calledAt;
}

function linesOf({ stack = '' }: Error): string {
  return stack.split('\n').slice(1).join('\n');
}
