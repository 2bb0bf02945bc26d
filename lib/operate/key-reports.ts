import type { KeyHolder, KeyReport, KeyWaiter, OwnerParts } from '../core/model/key-report.js';
import { partsOf } from '../core/model/owner.js';
import type { HolderState, KeyState, WaiterState } from '../core/store/inspector.js';
import { heldKeyOf, toldOf, type Entry } from './process-report.js';

/** What the store knows of a key, with the reports of the processes. */
export function reportOf(state: KeyState, entries: readonly Entry[]): KeyReport {
  const told = entries.filter(({ key }) => key === state.key);
  const waiters = state.waiters.map((waiter) => waiterOf(waiter, told));
  const local = state.holders.flatMap((holder) => waitersBehind(holder, told));
  return {
    ...state,
    at: new Date(state.at),
    holders: state.holders.map((holder) => holderOf(holder, told)),
    waiters: [...waiters, ...local],
    waiterCount: state.waiterCount + local.length,
  };
}

function holderOf(state: HolderState, told: readonly Entry[]): KeyHolder {
  const teller = told.find(({ owner, holder }) => holder && owner === state.owner)?.holder;
  const since = teller?.since ?? state.since;
  const known = { ...state, ...ownerPartsOf(state.owner), since: since === null ? null : new Date(since) };
  return teller ? { ...known, told: toldOf(teller) } : known;
}

function waiterOf(state: WaiterState, told: readonly Entry[]): KeyWaiter {
  const tellers = told.find(({ owner, waiters }) => waiters && owner === state.owner)?.waiters;
  const known = { ...state, ...ownerPartsOf(state.owner), since: new Date(state.since), holding: state.holding.map(heldKeyOf) };
  return tellers ? { ...known, told: tellers.map(toldOf) } : known;
}

/** The callers of the holder's own process, which need no queue entry at the store. */
function waitersBehind({ owner, permits }: HolderState, told: readonly Entry[]): KeyWaiter[] {
  const tellers = told.find((entry) => entry.waiters && entry.owner === owner)?.waiters?.map(toldOf) ?? [];
  const [first] = tellers;
  if (!first) return [];
  return [{ owner, ...ownerPartsOf(owner), since: first.since, permits, holding: first.holding, isHeard: true, told: tellers }];
}

function ownerPartsOf(owner: string): OwnerParts {
  const { app, host, pid } = partsOf(owner) ?? { app: owner, host: '', pid: 0 };
  return { app, host, pid };
}
