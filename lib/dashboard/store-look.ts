import { hostname } from 'node:os';
import type { KeyReport, KeyWaiter, ListOptions } from '../core/model/key-report.js';
import { partsOf, processOf } from '../core/model/owner.js';
import { dateOf, duration, isSettledWithin, now } from '../core/util/clock.js';
import type { Locks } from '../locks.js';
import type { Operator } from '../operate/operator.js';
import type { KnownEvents } from '../operate/other-processes.js';
import { heldWhileWaiting, SeenTwice } from '../operate/wait-graph.js';
import { DoctorAdvice } from './doctor-advice.js';
import { deadlockAlarm, waitAlarm } from './alarms.js';
import type { PageAlarm, Note, Party, RowName, StoreState } from './dashboard.protocol.js';
import { censusOf, type Census, type Seen } from './census.js';
import { Notes } from './notes.js';
import { byUrgency, holderId, isUsed, lineOf, partyOf, type Line } from './rows.js';
import { Shared } from './shared.js';

/** Keys of a store that are listed; those with waiters come in any order. */
const MOST_KEYS = 10_000;
/** Rows that are shown, and found by the store. */
export const MOST_ROWS = 500;
/** Keys that are asked for together, and keys of a listing between which other work goes on. */
const TOGETHER = 64;
const MOST_SEARCHES = 20;
/** Milliseconds after which a snapshot is not waited for. */
const LONG = 1_000;
const CHAIN = 20;

/** A question to the store for keys with a text, for all who ask it. */
interface Search {
  readonly shared: Shared;
  lines: readonly Line[];
}

/** A snapshot of one store and its processes, for all who look: made when somebody asks. */
export class StoreLook {
  /** The rows to show, the most urgent first. */
  top: readonly Line[] = [];
  state: StoreState;
  census: Census = censusOf([], false);
  alarms: readonly PageAlarm[] = [];
  readonly notes: Notes;
  readonly advice = new DoctorAdvice();
  private seen = new Map<string, Seen>();
  /** The holders of these keys. */
  private holders = new Map<string, Party>();
  /** Since when the store does not answer. */
  private away: { readonly at: number; readonly reason: string } | undefined;
  private readonly known: KnownEvents = new Map();
  private readonly deadlocks = new SeenTwice();
  private readonly look = new Shared(() => this.make());
  private readonly overdue = new Shared(() => this.askOverdue());
  private readonly searches = new Map<string, Search>();

  /** @param nameOf hides what keys say, if the app wants that. @param share the part of the time that this store may take, of that of all. */
  constructor(
    readonly name: string,
    readonly locks: Locks,
    private readonly nameOf: (key: string) => string,
    private readonly isRedacted: boolean,
    private readonly share: number,
  ) {
    this.state = { name, at: null, isAway: false, latency: null, keys: 0, isWhole: true };
    this.notes = new Notes(name, nameOf, isRedacted);
  }

  /** Resolves when the look is fresh enough. */
  async refresh(): Promise<void> {
    // Rows of the last look may be over by now, and those of a new one.
    const look = this.look.get();
    if (this.state.at === null && !this.away) await look;
    else await isSettledWithin(LONG, look);
    await this.overdue.get();
  }

  /** The holder as it was known. */
  holder(key: string, owner: string): Party | undefined {
    return this.holders.get(holderId(key, owner));
  }

  get hears(): boolean {
    return this.locks.store.bus !== undefined;
  }

  /** The keys whose row has all of these words; of a store with more keys than are listed, those whose name has them, too. */
  async search(words: readonly string[]): Promise<readonly Line[]> {
    const has = ({ text }: Line): boolean => words.every((word) => text.includes(word));
    const found = [...this.seen.values()].map(({ line }) => line).filter(has);
    if (this.state.isWhole || this.isRedacted) return found.sort(byUrgency);
    const pattern = `*${words.join('*')}*`;
    const search = this.searches.get(pattern) ?? this.searchFor(pattern);
    await search.shared.get();
    return [...found, ...search.lines.filter(({ key }) => !this.seen.has(key))].sort(byUrgency);
  }

  /** Asks the store for keys: something has changed, or should have. */
  async ask(keys: readonly string[]): Promise<KeyReport[]> {
    const reports = await this.locks
      .operator()
      .then((operator) => operator.inspectAll(keys))
      .catch((): KeyReport[] => []);
    this.take(reports);
    return reports;
  }

  /** A report of a key, which somebody has asked for. */
  reported(report: KeyReport): void {
    if (this.state.at !== null) this.take([report]);
  }

  /** The key, what its holder waits for, and so on. */
  chainFrom({ key, holders }: KeyReport): RowName[] {
    const chain = [key];
    let uuids = holders.map(({ owner }) => partsOf(owner)?.uuid ?? owner);
    for (let isOver = false; !isOver && chain.length < CHAIN;) {
      const isHeld = (waiter: KeyWaiter): boolean => heldWhileWaiting(waiter).some(({ uuid }) => uuids.includes(uuid));
      const next = [...this.seen.values()].find(({ report }) => report.waiters.some(isHeld));
      isOver = !next || chain.includes(next.report.key);
      if (!next) break;
      chain.push(next.report.key);
      uuids = next.report.holders.map(({ owner }) => partsOf(owner)?.uuid ?? owner);
    }
    return chain.map((each) => ({ store: this.name, key: this.nameOf(each) }));
  }

  /** Keeps an order of an operator among the events. */
  ordered(event: Note['event'], key: string, owner: string | undefined, by: string | null, reason: string): void {
    const at = dateOf(now());
    const process = `dashboard@${hostname()}:${globalThis.process.pid}`;
    this.notes.add({ event, key, owner, by, reason, at, firstAt: at, count: 1, label: null, process, lasted: null });
  }

  private async make(): Promise<number> {
    const start = now();
    let cost = 0;
    try {
      const { error, roundTrip = null, degraded } = await this.locks.health();
      if (error) throw error;
      const operator = await this.locks.operator();
      const told = await operator.ask(this.known);
      this.notes.heard(told.events);
      const listedAt = now();
      const all = await this.listed({ limit: MOST_KEYS + 1 }, operator, told);
      cost = now() - listedAt;
      this.back();
      const isWhole = all.length <= MOST_KEYS;
      this.state = { name: this.name, at: dateOf(now()), isAway: false, latency: roundTrip, keys: all.length, isWhole };
      await this.takeAll(all, new Set(told.entries.map(({ owner }) => processOf(owner))));
      this.judge(degraded);
      void this.advice.refresh(this.name, this.locks);
    } catch (error) {
      this.away ??= { at: dateOf(start), reason: (error as Error).message };
      this.state = { ...this.state, isAway: true, latency: null };
      const text = `${this.name} does not answer: ${this.isRedacted ? '' : (error as Error).message}`;
      this.alarms = [{ kind: 'outage', text, since: this.away.at }];
    }
    return cost * this.share;
  }

  private searchFor(pattern: string): Search {
    const search: Search = {
      lines: [],
      shared: new Shared(async () => {
        const start = now();
        const found = await this.listed({ pattern, limit: MOST_ROWS }).catch(() => []);
        search.lines = found.map(({ line }) => line);
        return now() - start;
      }),
    };
    this.searches.set(pattern, search);
    if (this.searches.size > MOST_SEARCHES) this.searches.delete(this.searches.keys().next().value!);
    return search;
  }

  /** Other work goes on meanwhile. */
  private async listed(options: ListOptions, operator?: Operator, told?: Parameters<Operator['list']>[1]): Promise<Seen[]> {
    const all: Seen[] = [];
    for await (const report of (operator ?? (await this.locks.operator())).list({ state: 'used', ...options }, told)) {
      if (all.push(this.seenOf(report)) % TOGETHER === 0) await nextTurn();
    }
    return all;
  }

  /** The store answers again. */
  private back(): void {
    if (!this.away) return;
    const { at: firstAt, reason } = this.away;
    const at = dateOf(now());
    const nobody = { owner: undefined, by: null, label: null, process: '' };
    this.notes.add({ ...nobody, event: 'outage', key: '', reason, at, firstAt, count: 1, lasted: at - firstAt });
    this.away = undefined;
  }

  private judge(degraded: readonly string[]): void {
    const { name, nameOf } = this;
    const time = dateOf(now());
    const all = [...this.seen.values()];
    const waited = all.map(({ report }) => report).filter(({ waiterCount }) => waiterCount > 0);
    const deadlocks = this.deadlocks.of(this.locks.waitGraph(waited));
    const named = new Set(deadlocks.flatMap(({ keys }) => keys));
    const waits = this.top
      .filter(({ key }) => !named.has(key))
      .flatMap(({ row, key }) => waitAlarm(row, this.seen.get(key)!.report, time, this.hears) ?? []);
    this.alarms = [
      ...deadlocks.map((deadlock) => deadlockAlarm(deadlock, name, nameOf)),
      ...waits,
      ...degraded.map((text): PageAlarm => ({ kind: 'store', text: `${name}: ${text}` })),
    ];
  }

  private seenOf(report: KeyReport): Seen {
    const time = dateOf(now());
    const { key } = report;
    const parties = report.holders.map((holder) => partyOf(holder, time, this.hears, this.holder(key, holder.owner)));
    return { report, parties, line: lineOf(this.name, this.nameOf(key), report, parties[0] ?? null, time) };
  }

  /** All keys of a listing. @param answering processes that have answered. */
  private async takeAll(all: readonly Seen[], answering: Set<string>): Promise<void> {
    const before = this.holders;
    const holders = new Map(all.flatMap(({ report: { key }, parties }) => parties.map((party) => [holderId(key, party.owner), party])));
    await nextTurn();
    const top = all.map(({ line }) => line).sort(byUrgency).slice(0, MOST_ROWS); // prettier-ignore
    await nextTurn();
    const census = censusOf(all, this.hears);
    await nextTurn();
    this.seen = new Map(all.map((seen) => [seen.report.key, seen]));
    [this.holders, this.top, this.census] = [holders, top, census];
    for (const party of holders.values()) if (!party.isSilent) answering.add(processOf(party.owner));
    for (const [id, party] of before)
      if (!holders.has(id) && !answering.has(processOf(party.owner))) this.ranOut(id.slice(0, id.indexOf('\n')), party);
  }

  /** Some keys, whose rows change. The numbers are those of the last listing. */
  private take(reports: readonly KeyReport[]): void {
    const changed = new Set(reports.map(({ key }) => key));
    const rest = this.top.filter(({ key }) => !changed.has(key));
    const used = reports.filter(isUsed).map((report) => this.seenOf(report));
    for (const { key, holders } of reports) {
      const owners = new Set(holders.map(({ owner }) => owner));
      for (const { owner } of this.seen.get(key)?.report.holders ?? []) {
        const party = this.holder(key, owner);
        if (owners.has(owner) || !party) continue;
        this.holders.delete(holderId(key, owner));
        this.ranOut(key, party);
      }
      this.seen.delete(key);
    }
    for (const seen of used) {
      this.seen.set(seen.report.key, seen);
      for (const party of seen.parties) this.holders.set(holderId(seen.report.key, party.owner), party);
    }
    this.top = [...rest, ...used.map(({ line }) => line)].sort(byUrgency).slice(0, MOST_ROWS);
  }

  /** An owner has gone when its lease was over, and its process did not answer before either: nobody has released it. */
  private ranOut(key: string, { owner, label, isSilent, saidAt, endsAt, since }: Party): void {
    const time = dateOf(now());
    if (!isSilent || saidAt === null || endsAt === null || endsAt > time) return;
    const reason = `silent for ${duration(time - saidAt)}`;
    const lasted = since === null ? null : endsAt - since;
    this.notes.add({
      event: 'ran out',
      key,
      owner,
      label,
      by: null,
      reason,
      at: endsAt,
      firstAt: endsAt,
      count: 1,
      process: processOf(owner),
      lasted,
    });
  }

  /** Rows whose leases should be over: those of silent processes first. */
  private async askOverdue(): Promise<number> {
    const time = dateOf(now());
    const rank = ({ row: { holder } }: Line): number => Number(!holder?.isSilent);
    const isOver = ({ row: { holder } }: Line): boolean => holder !== null && holder.endsAt !== null && holder.endsAt <= time;
    const lines = this.top.filter(isOver).sort((a, b) => rank(a) - rank(b));
    const keys = lines.slice(0, TOGETHER).map(({ key }) => key);
    if (keys.length > 0 && !this.away) await this.ask(keys);
    return 0;
  }
}

/** No timer: those of several stores would be due again and again before anything else. */
function nextTurn(): Promise<void> {
  return new Promise(setImmediate);
}
