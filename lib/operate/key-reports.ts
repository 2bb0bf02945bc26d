import type { KeyHolder, KeyReport, KeyWaiter, OwnerParts } from '../core/model/key-report.js';
import { partsOf } from '../core/model/owner.js';
import type { HolderState, KeyState, WaiterState } from '../core/store/inspector.js';
import { heldKeyOf, processReportOf, type Entry } from './process-report.js';

/** Joins the state of a key at the store with the reports of the processes. */
export function keyReportOf(state: KeyState, allEntries: readonly Entry[]): KeyReport {
  const entries = allEntries.filter(({ key }) => key === state.key);
  const local = state.holders.flatMap((holder) => waitersBehind(holder, entries));
  return {
    ...state,
    at: new Date(state.at),
    holders: state.holders.map((holder) => keyHolderOf(holder, entries)),
    waiters: [...state.waiters.map((waiter) => keyWaiterOf(waiter, entries)), ...local],
    waiterCount: state.waiterCount + local.length,
  };
}

function keyHolderOf(state: HolderState, entries: readonly Entry[]): KeyHolder {
  const report = entries.find(({ owner, holder }) => holder && owner === state.owner)?.holder;
  const since = report?.since ?? state.since;
  const holder = { ...state, ...ownerPartsOf(state.owner), since: since === null ? null : new Date(since) };
  return report ? { ...holder, told: processReportOf(report) } : holder;
}

function keyWaiterOf(state: WaiterState, entries: readonly Entry[]): KeyWaiter {
  const reports = entries.find(({ owner, waiters }) => waiters && owner === state.owner)?.waiters;
  const waiter = { ...state, ...ownerPartsOf(state.owner), since: new Date(state.since), holding: state.holding.map(heldKeyOf) };
  return reports ? { ...waiter, told: reports.map(processReportOf) } : waiter;
}

/** The callers of the holder's own process, which need no queue entry at the store. */
function waitersBehind({ owner, permits }: HolderState, entries: readonly Entry[]): KeyWaiter[] {
  const told = entries.find((entry) => entry.waiters && entry.owner === owner)?.waiters?.map(processReportOf) ?? [];
  const [first] = told;
  if (!first) return [];
  return [{ owner, ...ownerPartsOf(owner), since: first.since, permits, holding: first.holding, isHeard: true, told }];
}

function ownerPartsOf(owner: string): OwnerParts {
  const { app, host, pid } = partsOf(owner) ?? { app: owner, host: '', pid: 0 };
  return { app, host, pid };
}
