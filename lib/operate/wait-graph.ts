import { defined } from '../core/model/check-options.js';
import { processOf } from '../core/model/owner.js';
import type { HeldKey, KeyHolder, KeyReport, KeyWaiter, OwnerParts, ProcessReport } from '../core/model/key-report.js';

/** Call chains that wait for one another. */
export interface Deadlock {
  /** Each key is held by one chain, and another one waits for it. */
  readonly keys: readonly string[];
  readonly members: readonly DeadlockMember[];
  /** Milliseconds until one of them times out, which ends the deadlock; `null`: never, or unknown. */
  readonly endsIn: number | null;
  readonly advice: string;
}

export interface DeadlockMember extends OwnerParts {
  readonly label?: string;
  readonly holds: readonly string[];
  readonly waitsFor: string;
}

/** A call chain that waits for the key of a report, and holds others. */
interface Chain extends Pick<ProcessReport, 'label' | 'patienceLeft'> {
  readonly waiter: KeyWaiter;
  readonly report: KeyReport;
  /** The keys that it believes to hold. */
  readonly holding: readonly HeldKey[];
  /** The chains that hold its key, and the chains behind it. */
  readonly next: Chain[];
  readonly behind: Chain[];
}

const ADVICE = 'Take these keys in one order everywhere, or all at once with a multiLock.';

/**
 * Finds the deadlocks among keys: sets of call chains that hold what another one of the set waits for, so that none of them can go on until a wait
 * ends. Chains are identified by the uuids of owners, so a lost lease makes no false deadlock. If a process does not answer, only the first caller of
 * each of its queue entries is known.
 *
 * The reports of several keys are not taken at the same moment: trust a deadlock that is found twice, a second apart.
 *
 * The method: a chain may go on if its share of the key is free once all holders that do not wait, or may go on themselves, have released it. The
 * other chains are stuck. Chains that wait for one another, directly or through others, are a deadlock.
 *
 * @param reports such as those of `locks.list({ state: 'waited' })`, and of the keys that their waiters hold.
 */
export function waitGraph(reports: Iterable<KeyReport>): Deadlock[] {
  const chains = [...reports].flatMap((report) => report.waiters.flatMap((waiter) => chainsOf(waiter, report)));
  const holding = new Map<string, Chain[]>();
  for (const chain of chains) for (const { uuid } of chain.holding) holding.set(uuid, [...(holding.get(uuid) ?? []), chain]);
  const chainsOfHolder = (holder: KeyHolder): readonly Chain[] => holding.get(uuidOf(holder)) ?? [];
  for (const chain of chains) {
    chain.next.push(...chain.report.holders.flatMap(chainsOfHolder));
    for (const other of chain.next) other.behind.push(chain);
  }
  const stuck = new Set(chains);
  const isStuck = (holder: KeyHolder): boolean => holder.phase === 'held' && chainsOfHolder(holder).some((chain) => stuck.has(chain));
  for (const open = [...chains]; open.length > 0;) {
    const chain = open.pop() as Chain;
    if (!stuck.has(chain) || !mayGoOn(chain, isStuck)) continue;
    stuck.delete(chain);
    open.push(...chain.behind);
  }
  const deadlocks: Deadlock[] = [];
  for (const chain of stuck) {
    const waiting = reachableFrom(chain, ({ behind }) => behind.filter((other) => stuck.has(other)));
    const ahead = reachableFrom(chain, ({ next }) => next.filter((other) => stuck.has(other)));
    const together = [...ahead].filter((other) => waiting.has(other));
    for (const other of together) stuck.delete(other);
    if (together.length > 0) deadlocks.push(deadlockOf(chain, together));
  }
  return deadlocks;
}

/** The keys that a waiter holds, as the store and its process report them. */
export function heldWhileWaiting({ holding, report = [] }: KeyWaiter): HeldKey[] {
  return [...holding, ...report.flatMap((each) => each.holding)];
}

/** Knows deadlocks that two looks have found, one after the other: what only one of them finds was a passing state. */
export class SeenTwice {
  private before = new Set<string>();

  /** @param deadlocks of this look. @returns those that the look before has found, too. */
  of(deadlocks: readonly Deadlock[]): Deadlock[] {
    const { before } = this;
    this.before = new Set(deadlocks.map(nameOf));
    return deadlocks.filter((deadlock) => before.has(nameOf(deadlock)));
  }
}

function nameOf({ keys, members }: Deadlock): string {
  return JSON.stringify([[...keys].sort(), members.map(processOf).sort()]);
}

/** The callers by this waiter that hold a key: others keep no caller waiting. */
function chainsOf(waiter: KeyWaiter, report: KeyReport): Chain[] {
  const callers: readonly Pick<ProcessReport, 'label' | 'patienceLeft' | 'holding'>[] = waiter.report ?? [waiter];
  return callers
    .filter(({ holding }) => holding.length > 0)
    .map(({ label, patienceLeft, holding }) => ({ waiter, report, label, patienceLeft, holding, next: [], behind: [] }));
}

/** Whether its share of the key is free once all holders that are not stuck have released it. */
function mayGoOn({ waiter, report }: Chain, isStuck: (holder: KeyHolder) => boolean): boolean {
  const { permits = Infinity, holders } = report;
  const staying = holders.filter(isStuck);
  if (waiter.permits === Infinity || staying.some((holder) => holder.permits === Infinity)) return staying.length === 0;
  return staying.reduce((taken, holder) => taken + holder.permits, 0) + waiter.permits <= permits;
}

/** All that is reached by one step or more. */
function reachableFrom(start: Chain, next: (chain: Chain) => readonly Chain[]): Set<Chain> {
  const reached = new Set<Chain>();
  for (const open = [...next(start)]; open.length > 0;) {
    const chain = open.pop() as Chain;
    if (reached.has(chain)) continue;
    reached.add(chain);
    open.push(...next(chain));
  }
  return reached;
}

/** @param together all of them, in any order. */
function deadlockOf(first: Chain, together: Iterable<Chain>): Deadlock {
  const left = new Set(together);
  const chains: Chain[] = [];
  for (let chain: Chain | undefined = first; chain;) {
    left.delete(chain);
    chains.push(chain);
    chain = chain.next.find((other) => left.has(other)) ?? left.values().next().value;
  }
  const wanted = new Set(chains.flatMap(({ report }) => report.holders.map(uuidOf)));
  const members = chains.map(({ waiter: { app, host, pid }, label, holding, report }): DeadlockMember => {
    const holds = holding.filter(({ uuid }) => wanted.has(uuid)).map(({ key }) => key);
    return defined({ app, host, pid, label, holds, waitsFor: report.key });
  });
  const endsIn = Math.min(...chains.map(({ patienceLeft }) => patienceLeft ?? Infinity));
  const keys = [...new Set(members.map(({ waitsFor }) => waitsFor))];
  return { keys, members, endsIn: endsIn === Infinity ? null : endsIn, advice: ADVICE };
}

function uuidOf({ owner }: KeyHolder): string {
  return (/([^:;]*)(;[^:]*)?$/.exec(owner) as RegExpExecArray)[1] as string;
}
