import type { Tenure } from '../core/holding/tenure.js';
import { defined } from '../core/model/check-options.js';
import type { HeldKey, KeyHolder, KeyReport, KeyWaiter, OwnerParts, ProcessReport } from '../core/model/key-report.js';
import { holdingOf, partsOf, processOf } from '../core/model/owner.js';
import type { HolderState, KeyState } from '../core/store/inspector.js';
import { dateOf } from '../core/util/clock.js';
import type { LockQueue } from '../core/waiting/lock-queue.js';
import type { KeptKey, LockQueues } from '../core/waiting/lock-queues.js';
import type { Waiter } from '../core/waiting/waiter.js';
import type { Entry, SentReport } from './messages.js';

/** Callers of one queue that are reported one by one; of the others only the number is. */
const MOST_WAITERS = 20;
/** Keys that are reported without a pause. */
const PART = 500;

/** The reports of this process on these keys, or on all: in parts, between which other work goes on. There is one part at least. */
export async function* entriesOf(queues: LockQueues, keys?: ReadonlySet<string>): AsyncGenerator<{ entries: Entry[]; isLast: boolean }> {
  const all = [...queues.all, ...queues.kept.values()].filter(({ key }) => keys?.has(key) ?? true);
  for (let end = PART; ; end += PART) {
    const part = all.slice(end - PART, end);
    yield { entries: part.flatMap((each) => ('owner' in each ? entryOfKept(each) : entriesOfQueue(each))), isLast: end >= all.length };
    if (end >= all.length) return;
    await new Promise(setImmediate);
  }
}

function entryOfKept({ key, owner, label, grantedAt, fencingToken, keepUntil, isHandedOver }: KeptKey): Entry {
  const holder = { label, since: dateOf(grantedAt), token: fencingToken, holding: [], waiting: 0, oldestWait: 0 };
  return { key, owner, holder: isHandedOver ? { ...holder, handedOverUntil: dateOf(keepUntil) } : holder };
}

function entriesOfQueue({ key, waiting, holders, contenders }: LockQueue): Entry[] {
  const callers = [...waiting].slice(0, MOST_WAITERS);
  const behind = { waiting: waiting.size, oldestWait: Math.round(callers[0]?.waited ?? 0) };
  const holderOf = ({ turn: { label, grantedAt, fencingToken } }: Tenure): SentReport => {
    return { label, since: dateOf(grantedAt), token: fencingToken, holding: [], ...behind };
  };
  const waiterOf = ({ settings: { options, patience }, startedAt, waited, holding }: Waiter): SentReport => {
    const patienceLeft = patience === Infinity ? null : Math.max(0, Math.round(patience - waited));
    return { label: options.label, since: dateOf(startedAt), token: null, patienceLeft, holding: holding.map(holdingOf), ...behind };
  };
  const entries = holders.map((tenure): Entry => ({ key, owner: tenure.owner, holder: holderOf(tenure) }));
  // They ask the store by a contender, or wait for a holder of this process.
  const owner = contenders[0]?.owner ?? holders[0]?.owner;
  return callers.length === 0 || owner === undefined ? entries : [...entries, { key, owner, waiters: callers.map(waiterOf) }];
}

/** Joins the state of a key at the store with what the processes say of it. Only here callers are counted. */
export function keyReportOf(state: KeyState, entries: readonly Entry[] = []): KeyReport {
  const holderIn = (owner: string): SentReport | undefined => entries.find((entry) => entry.holder && entry.owner === owner)?.holder;
  const keyHolderOf = (holder: HolderState): KeyHolder => {
    const sent = holderIn(holder.owner);
    const since = sent?.since ?? holder.since;
    const report = sent && reportOf(sent);
    return defined({ ...holder, ...ownerPartsOf(holder.owner), since: since === null ? null : new Date(since), report });
  };
  const waiters = new Map<string, KeyWaiter>();
  /** The owner by which the callers of a process wait, and how many. */
  const callers = new Map<string, number>();
  const add = (waiter: Omit<KeyWaiter, keyof OwnerParts | 'report'>): void => {
    const { owner } = waiter;
    const entry = entries.find((each) => each.waiters && each.owner === owner);
    // What was a waiter when its process answered has the key by now.
    const isOlder = entry !== undefined && !holderIn(owner) && state.holders.some((holder) => holder.owner === owner);
    const report = entry?.waiters?.slice(isOlder ? 1 : 0).map(reportOf);
    // The clock of a process may be another one than that of the store.
    const since = report?.[0] && !isOlder ? new Date(state.at - report[0].oldestWait) : waiter.since;
    if (report?.length !== 0) waiters.set(owner, defined({ ...waiter, ...ownerPartsOf(owner), since, report }));
    callers.set(owner, report?.length === 0 ? 0 : (entry?.waiters?.[0]?.waiting ?? 1) - Number(isOlder));
  };
  for (const waiter of state.waiters) add({ ...waiter, since: new Date(waiter.since), holding: waiter.holding.map(heldKeyOf) });
  for (const { owner, permits } of state.holders) {
    // The callers of the holder's own process need no queue entry at the store.
    const [first] = entries.find((each) => each.waiters && each.owner === owner)?.waiters ?? [];
    if (first) add({ owner, since: new Date(first.since), permits, holding: first.holding.map(heldKeyOf), isHeard: true });
  }
  // A process has several entries in the queue of a semaphore, and reports all of its callers by one of them.
  const telling = new Set([...waiters.values()].filter(({ report }) => report).map(processOf));
  for (const [owner, { report }] of waiters) {
    if (report || !telling.has(processOf(owner))) continue;
    waiters.delete(owner);
    callers.delete(owner);
  }
  // The store has named a hundred of those that it knows.
  if (state.waiterCount > state.waiters.length)
    for (const { owner, waiters: others } of entries) if (others && !callers.has(owner)) callers.set(owner, others[0]?.waiting ?? 0);
  const known = [...callers.values()].reduce((sum, count) => sum + count, 0);
  return {
    ...state,
    at: new Date(state.at),
    holders: state.holders.map(keyHolderOf),
    waiters: [...waiters.values()],
    waiterCount: state.waiterCount > state.waiters.length ? Math.max(known, state.waiterCount) : known,
  };
}

function reportOf({ label, since, token, patienceLeft, waiting, oldestWait, holding, handedOverUntil: end }: SentReport): ProcessReport {
  const held = holding.map(heldKeyOf);
  const handedOverUntil = end === undefined ? undefined : new Date(end);
  return defined({ label, since: new Date(since), fencingToken: token, patienceLeft, waiting, oldestWait, holding: held, handedOverUntil });
}

/** @param holding `<uuid> <key>` */
function heldKeyOf(holding: string): HeldKey {
  const [uuid = '', ...key] = holding.split(' ');
  return { uuid, key: key.join(' ') };
}

/** The parts of an owner id. A text that is no owner id counts as the name of an app. */
export function ownerPartsOf(owner: string): OwnerParts {
  const { app, host, pid } = partsOf(owner) ?? { app: owner, host: '', pid: 0 };
  return { app, host, pid };
}
