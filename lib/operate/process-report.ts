import type { Tenure } from '../core/holding/tenure.js';
import type { HeldKey, Told } from '../core/model/key-report.js';
import { holdingOf } from '../core/model/owner.js';
import { dateOf } from '../core/util/clock.js';
import type { LockQueue } from '../core/waiting/lock-queue.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { Waiter } from '../core/waiting/waiter.js';

/** What a process reports of one of its owners, which holds a key, or by which callers wait for one. */
export interface Entry {
  readonly key: string;
  readonly owner: string;
  readonly holder?: Teller;
  readonly waiters?: readonly Teller[];
}

/** {@link Told} as it is sent: dates are milliseconds since 1970. */
export interface Teller {
  readonly label?: string;
  readonly since: number;
  readonly token: number | null;
  readonly patienceLeft?: number | null;
  readonly waiting: number;
  readonly oldestWait: number;
  readonly holding: readonly string[];
}

/** Callers of one queue that are reported one by one; of the others only the number is. */
const MOST_WAITERS = 20;

/** What this process reports of the keys that are asked for. */
export function entriesOf(queues: LockQueues, wants: (key: string) => boolean): Entry[] {
  const entries: Entry[] = [];
  for (const queue of queues.all) if (wants(queue.key)) entries.push(...entriesOfQueue(queue));
  return entries;
}

function entriesOfQueue(queue: LockQueue): Entry[] {
  const { key, waiting, holders, contenders } = queue;
  const callers: Waiter[] = [];
  for (const waiter of waiting) if (callers.length < MOST_WAITERS) callers.push(waiter);
  const behind = { waiting: waiting.size, oldestWait: Math.round(callers[0]?.waited ?? 0) };
  const waiters = callers.map((waiter) => tellerOf(waiter, behind));
  const entries: Entry[] = holders.map((tenure) => ({ key, owner: tenure.owner, holder: holderOf(tenure, behind) }));
  // They ask the store by a contender, or wait for a holder of this process.
  const by = contenders[0]?.owner ?? holders[0]?.owner;
  if (waiters.length > 0 && by !== undefined) entries.push({ key, owner: by, waiters });
  return entries;
}

type Behind = Pick<Teller, 'waiting' | 'oldestWait'>;

function holderOf({ turn }: Tenure, behind: Behind): Teller {
  const { label, grantedAt, fencingToken } = turn;
  return { label, since: dateOf(grantedAt), token: fencingToken, holding: [], ...behind };
}

function tellerOf({ settings, startedAt, waited, holding }: Waiter, behind: Behind): Teller {
  const { options, patience } = settings;
  const patienceLeft = patience === Infinity ? null : Math.max(0, Math.round(patience - waited));
  return { label: options.label, since: dateOf(startedAt), token: null, patienceLeft, holding: holding.map(holdingOf), ...behind };
}

export function toldOf({ label, since, token, patienceLeft, waiting, oldestWait, holding }: Teller): Told {
  const known = { since: new Date(since), fencingToken: token, waiting, oldestWait, holding: holding.map(heldKeyOf) };
  return { ...(label !== undefined && { label }), ...known, ...(patienceLeft !== undefined && { patienceLeft }) };
}

/** @param holding `<uuid> <key>` */
export function heldKeyOf(holding: string): HeldKey {
  const [uuid = '', ...key] = holding.split(' ');
  return { uuid, key: key.join(' ') };
}
