import type { Tenure } from '../core/holding/tenure.js';
import type { HeldKey, Told } from '../core/model/key-report.js';
import { holdingOf } from '../core/model/owner.js';
import { dateOf } from '../core/util/clock.js';
import type { LockQueue } from '../core/waiting/lock-queue.js';
import type { LockQueues } from '../core/waiting/lock-queues.js';
import type { Waiter } from '../core/waiting/waiter.js';

/** The reports of a process on one of its owners, which holds a key, or by which callers wait for one. */
export interface Entry {
  readonly key: string;
  readonly owner: string;
  readonly holder?: SentReport;
  readonly waiters?: readonly SentReport[];
}

/** {@link Told} as it is sent: the date is milliseconds since 1970, and a held key `<uuid> <key>`. */
export interface SentReport extends Omit<Told, 'since' | 'fencingToken' | 'holding'> {
  readonly since: number;
  readonly token: number | null;
  readonly holding: readonly string[];
}

/** Callers of one queue that are reported one by one; of the others only the number is. */
const MOST_WAITERS = 20;

/** Reports on the keys that are asked for. */
export function entriesOf(queues: LockQueues, isWanted: (key: string) => boolean): Entry[] {
  return queues.all.filter(({ key }) => isWanted(key)).flatMap(entriesOfQueue);
}

function entriesOfQueue({ key, waiting, holders, contenders }: LockQueue): Entry[] {
  const callers: Waiter[] = [];
  for (const waiter of waiting) if (callers.length < MOST_WAITERS) callers.push(waiter);
  const behind = { waiting: waiting.size, oldestWait: Math.round(callers[0]?.waited ?? 0) };
  const entries = holders.map((tenure): Entry => ({ key, owner: tenure.owner, holder: { ...reportOnHolder(tenure), ...behind } }));
  // They ask the store by a contender, or wait for a holder of this process.
  const owner = contenders[0]?.owner ?? holders[0]?.owner;
  if (callers.length === 0 || owner === undefined) return entries;
  return [...entries, { key, owner, waiters: callers.map((waiter) => ({ ...reportOnWaiter(waiter), ...behind })) }];
}

type WithoutQueue = Omit<SentReport, 'waiting' | 'oldestWait'>;

function reportOnHolder({ turn: { label, grantedAt, fencingToken } }: Tenure): WithoutQueue {
  return { label, since: dateOf(grantedAt), token: fencingToken, holding: [] };
}

function reportOnWaiter({ settings: { options, patience }, startedAt, waited, holding }: Waiter): WithoutQueue {
  const patienceLeft = patience === Infinity ? null : Math.max(0, Math.round(patience - waited));
  return { label: options.label, since: dateOf(startedAt), token: null, patienceLeft, holding: holding.map(holdingOf) };
}

export function processReportOf({ label, since, token, patienceLeft, waiting, oldestWait, holding }: SentReport): Told {
  const known = { since: new Date(since), fencingToken: token, waiting, oldestWait, holding: holding.map(heldKeyOf) };
  return { ...(label !== undefined && { label }), ...known, ...(patienceLeft !== undefined && { patienceLeft }) };
}

/** @param holding `<uuid> <key>` */
export function heldKeyOf(holding: string): HeldKey {
  const [uuid = '', ...key] = holding.split(' ');
  return { uuid, key: key.join(' ') };
}
