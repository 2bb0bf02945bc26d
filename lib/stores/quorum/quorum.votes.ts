import { LockConfigError, LockError, StoreError } from '../../core/model/errors.js';
import type { AcquireReply, CheckReply } from '../../core/store/lease-driver.js';

/** The answer of a member: a reply, or why there is none; `undefined`: nothing yet. */
export type Vote<Reply> = Reply | LockError | undefined;

/** So many of `count` members that any two groups of this size have a member in common. */
export function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}

export type Refusal = Extract<AcquireReply, { granted: false }>;

/** The outcome of an acquire. */
export type AcquireOutcome =
  /** Members that have granted a smaller token must record this one, or a larger one, before it counts. */
  | { readonly kind: 'raise'; readonly token: number }
  | { readonly kind: 'granted'; readonly token: number | null }
  /** `isSplit`: members have granted the key to this owner, and no other owner has it from a majority. */
  | { readonly kind: 'taken'; readonly reply: Refusal; readonly isSplit: boolean }
  /** The key is in use as another kind of lock. */
  | { readonly kind: 'misused'; readonly error: LockConfigError }
  /** Too few members have answered. */
  | { readonly kind: 'silent' };

/**
 * The outcome of an acquire; `undefined`: it is not certain yet.
 *
 * The token is no smaller than the first ones of a majority, and a majority has recorded it or a larger one. So any later majority has a member that
 * gives a larger token among its first ones, and what it agrees on is larger. The median of all first tokens needs no second question.
 *
 * @param floor the token that members were asked to record: a smaller one does not count. `undefined`: the votes are first answers.
 */
export function acquireOutcome(votes: readonly Vote<AcquireReply>[], floor?: number): AcquireOutcome | undefined {
  const majority = majorityOf(votes.length);
  const tokens: (number | null)[] = [];
  const refusals: Refusal[] = [];
  let misuse: LockConfigError | undefined;
  let [open, misuses] = [0, 0];
  for (const vote of votes) {
    if (vote === undefined) open++;
    else if (vote instanceof LockConfigError) {
      misuse ??= vote;
      misuses++;
    } else if (vote instanceof LockError) continue;
    else if (!vote.granted) refusals.push(vote);
    else if (!isBelow(vote, floor)) tokens.push(vote.token);
  }
  if (tokens.length >= majority) {
    if (tokens.includes(null)) return { kind: 'granted', token: null };
    const sorted = (tokens as number[]).sort((a, b) => a - b);
    const recorded = sorted[tokens.length - majority]!;
    const first = floor ?? sorted[majority - 1]!;
    return recorded >= first ? { kind: 'granted', token: recorded } : { kind: 'raise', token: first };
  }
  if (tokens.length + open >= majority) return undefined;
  if (tokens.length + refusals.length + misuses + open < majority) return { kind: 'silent' };
  const { holder, count } = mostNamed(refusals);
  // While the refusals name several owners, the missing answer tells whether the votes are split.
  if (open > 0 && count < majority) return undefined;
  if (misuse && misuses >= refusals.length) return { kind: 'misused', error: misuse };
  const remaining = nthSmallest([...tokens.map(() => 0), ...refusals.map((each) => each.remaining)], majority - 1);
  const ahead = Math.max(0, ...refusals.map((each) => each.ahead));
  return { kind: 'taken', reply: { granted: false, remaining, holder, ahead }, isSplit: tokens.length > 0 && count < majority };
}

/** The token that a member has granted; `null`: it has none. */
export function tokenOf(vote: Vote<AcquireReply>): number | null | undefined {
  return vote && 'granted' in vote && vote.granted ? vote.token : undefined;
}

/** Whether it is a grant with a smaller token. */
export function isBelow(vote: Vote<AcquireReply>, token = 0): boolean {
  return (tokenOf(vote) ?? token) < token;
}

/** The outcome of a request that each member answers with one of two words; the first one needs a majority. `undefined`: not certain yet. */
export function wordOutcome<Yes extends string, No extends string>(
  votes: readonly Vote<Yes | No>[],
  yes: Yes,
  no: No,
): Yes | No | 'silent' | undefined {
  const majority = majorityOf(votes.length);
  const countOf = (word: Vote<Yes | No>): number => votes.filter((vote) => vote === word).length;
  if (countOf(yes) >= majority) return yes;
  if (countOf(no) > votes.length - majority) return no;
  const undecided = countOf(undefined);
  return countOf(yes) + undecided >= majority || countOf(no) + undecided > votes.length - majority ? undefined : 'silent';
}

/** @param replies of a majority at least, for `count` members. */
export function checkOutcome(replies: readonly CheckReply[], count: number, isWaiting: boolean): CheckReply {
  const majority = majorityOf(count);
  const numberOf = (state: CheckReply['state']): number => replies.filter((reply) => reply.state === state).length;
  const held = replies.filter(({ holder }) => holder !== null);
  const { holder } = mostNamed(held);
  const isHeld = numberOf('held') >= majority;
  const isFree = replies.length - held.length >= majority;
  const state = isHeld ? 'held' : isWaiting || numberOf('queued') > 0 ? 'queued' : isFree ? 'free' : 'taken';
  if (isFree) return { state, remaining: 0, holder: null, token: null };
  const own = replies.filter((reply) => reply.holder === holder);
  const ends = own.map((reply) => reply.remaining);
  return {
    state,
    // The lease lasts as long as a majority has it.
    remaining: nthSmallest(ends, Math.max(0, own.length - majority)),
    holder,
    token: leaseToken(own.map(({ token }) => token)),
  };
}

/**
 * The token of a lease, by what its members have recorded last: a member may have recorded a larger one. What each records next is larger, so that the
 * same members give a later lease a larger token.
 */
function leaseToken(recorded: readonly (number | null)[]): number | null {
  const tokens = recorded.filter((token) => token !== null);
  return tokens.length > 0 ? Math.min(...tokens) : null;
}

/** The error that no retry can help, if so many members have one that the others are too few. */
export function finalError(votes: readonly Vote<unknown>[]): StoreError | undefined {
  const errors = votes.filter((vote): vote is StoreError => vote instanceof StoreError && !vote.transient);
  return errors.length > votes.length - majorityOf(votes.length) ? errors[0] : undefined;
}

function mostNamed(replies: readonly { readonly holder: string | null }[]): { holder: string | null; count: number } {
  const counts = new Map<string | null, number>();
  for (const { holder } of replies) counts.set(holder, (counts.get(holder) ?? 0) + 1);
  let most: { holder: string | null; count: number } = { holder: null, count: 0 };
  for (const [holder, count] of counts) if (count > most.count) most = { holder, count };
  return most;
}

/** The value at a position of the sorted milliseconds. Negative is unknown, or without end. */
function nthSmallest(values: readonly number[], n: number): number {
  const sorted = values.map((value) => (value < 0 ? Infinity : value)).sort((a, b) => a - b);
  const value = sorted[n] ?? Infinity;
  return value === Infinity ? -1 : value;
}
