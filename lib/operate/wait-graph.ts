import type { HeldKey, KeyHolder, KeyReport, KeyWaiter, OwnerParts } from '../core/model/key-report.js';

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

/** A call chain that waits. */
interface Chain {
  readonly waiter: KeyWaiter;
  readonly report: KeyReport;
  readonly label: string | undefined;
  readonly patienceLeft: number | null;
  /** The keys that it believes to hold. */
  readonly holding: readonly HeldKey[];
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
  const waitsOf = new Map<string, Chain[]>();
  for (const chain of chains) for (const { uuid } of chain.holding) pushTo(waitsOf, uuid, chain);
  /** The owners that wait for an owner. */
  const behind = new Map<string, string[]>();
  for (const [uuid, waits] of waitsOf) {
    for (const { report } of waits) for (const holder of report.holders) pushTo(behind, uuidOf(holder), uuid);
  }
  const stuck = stuckAmong(waitsOf, behind);
  const next = (uuid: string): string[] =>
    (waitsOf.get(uuid) ?? []).flatMap(({ report }) => report.holders.map(uuidOf).filter((holder) => stuck.has(holder)));
  const before = (uuid: string): string[] => (behind.get(uuid) ?? []).filter((waiter) => stuck.has(waiter));
  const deadlocks: Deadlock[] = [];
  const done = new Set<string>();
  for (const uuid of stuck) {
    if (done.has(uuid)) continue;
    const waiting = reachableFrom(uuid, before);
    const together = [...reachableFrom(uuid, next)].filter((other) => waiting.has(other));
    for (const other of together) done.add(other);
    if (together.length > 0) deadlocks.push(deadlockOf([uuid, ...together], waitsOf, next));
  }
  return deadlocks;
}

function chainsOf(waiter: KeyWaiter, report: KeyReport): Chain[] {
  const reports = waiter.told ?? [{ label: undefined, patienceLeft: null, holding: waiter.holding }];
  return reports.map(({ label, patienceLeft = null, holding }) => ({ waiter, report, label, patienceLeft, holding }));
}

/** The owners that wait, directly or through others, for one another, or behind those. */
function stuckAmong(waitsOf: ReadonlyMap<string, readonly Chain[]>, behind: ReadonlyMap<string, readonly string[]>): Set<string> {
  const stuck = new Set(waitsOf.keys());
  for (const open = [...stuck]; open.length > 0;) {
    const uuid = open.pop() as string;
    if (!stuck.has(uuid) || !waitsOf.get(uuid)?.every((chain) => mayGoOn(chain, stuck))) continue;
    stuck.delete(uuid);
    open.push(...(behind.get(uuid) ?? []));
  }
  return stuck;
}

/** Whether its share of the key is free once all owners that are not stuck have released it. */
function mayGoOn({ waiter, report }: Chain, stuck: ReadonlySet<string>): boolean {
  const { permits = Infinity, holders } = report;
  const staying = holders.filter((holder) => holder.phase === 'held' && stuck.has(uuidOf(holder)));
  if (waiter.permits === Infinity || staying.some((holder) => holder.permits === Infinity)) return staying.length === 0;
  return staying.reduce((taken, holder) => taken + holder.permits, 0) + waiter.permits <= permits;
}

/** All that is reached by one step or more. */
function reachableFrom(start: string, next: (uuid: string) => readonly string[]): Set<string> {
  const reached = new Set<string>();
  for (const open = [...next(start)]; open.length > 0;) {
    const uuid = open.pop() as string;
    if (reached.has(uuid)) continue;
    reached.add(uuid);
    open.push(...next(uuid));
  }
  return reached;
}

function pushTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

function deadlockOf(
  uuids: readonly string[],
  waitsOf: ReadonlyMap<string, readonly Chain[]>,
  next: (uuid: string) => readonly string[],
): Deadlock {
  const own = new Set(uuids);
  const chains = new Set<Chain>();
  for (let uuid = uuids[0]; uuid !== undefined;) {
    for (const chain of waitsOf.get(uuid) ?? []) chains.add(chain);
    const isNew = (other: string): boolean => own.has(other) && (waitsOf.get(other) ?? []).some((chain) => !chains.has(chain));
    uuid = next(uuid).find(isNew) ?? uuids.find(isNew);
  }
  const members = [...chains].map(({ waiter: { app, host, pid }, label, holding, report }) => {
    const held = holding.filter(({ uuid }) => own.has(uuid)).map(({ key }) => key);
    return { app, host, pid, ...(label !== undefined && { label }), holds: held, waitsFor: report.key };
  });
  const ends = [...chains].map(({ patienceLeft }) => patienceLeft).filter((left) => left !== null);
  const keys = [...new Set(members.map(({ waitsFor }) => waitsFor))];
  return { keys, members, endsIn: ends.length === 0 ? null : Math.min(...ends), advice: ADVICE };
}

function uuidOf({ owner }: KeyHolder): string {
  return (/([^:;]*)(;[^:]*)?$/.exec(owner) as RegExpExecArray)[1] as string;
}
