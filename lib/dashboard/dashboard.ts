import { createHash } from 'node:crypto';
import { checkKey } from '../core/model/key.js';
import { LockError } from '../core/model/errors.js';
import type { KeyWaiter } from '../core/model/key-report.js';
import { dateOf, isSettledWithin, now } from '../core/util/clock.js';
import type { Locks } from '../locks.js';
import {
  VERSION,
  type PageAlarm,
  type HoldAnswer,
  type HoldOrder,
  type KeyAnswer,
  type Numbers,
  type ReleaseAnswer,
  type ReleaseOrder,
  type PageState,
  type WaiterAnswer,
} from './dashboard.protocol.js';
import { checkNumber, checkReason, Refused } from './refused.js';
import { partyOf, byUrgency } from './rows.js';
import { MOST_ROWS, StoreLook } from './store-look.js';
import { scriptHash, styleHash } from './page.generated.js';

const LONGEST_HOLD = 7 * 24 * 3_600_000;
const LONGEST_GRACE = 60_000;
/** Milliseconds between two orders of one person. */
const APART = 1000;
const LONGEST_SEARCH = 512;
/** Names that are remembered. */
const MOST_NAMES = 50_000;
/** Milliseconds that a page waits for a fresh look at a store, and for the first one: then it gets the last one. */
const PATIENCE = { next: 1_500, first: 4_000 };

/** Headers of the page. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': [
    "default-src 'none'",
    `script-src '${scriptHash}'`,
    `style-src '${styleHash}'`,
    "connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  ].join('; '),
  'cache-control': 'no-store, no-transform',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** The answers of the dashboard, in Nest or elsewhere. */
export class Dashboard {
  private readonly looks: ReadonlyMap<string, StoreLook>;
  private readonly redact: ((key: string) => string) | undefined;
  /** The names of keys, and the keys behind them, if they are redacted. */
  private readonly names = new Map<string, string>();
  private readonly keys = new Map<string, string>();
  /** When each person gave the last order. */
  private readonly orderedAt = new Map<string | null, number>();
  private hasWarned = false;

  constructor(stores: ReadonlyMap<string, Locks>, options: { readonly redact?: (key: string) => string } = {}) {
    this.redact = options.redact;
    const nameOf = (key: string): string => this.nameOf(key);
    const looks = [...stores].map(([name, locks]) => new StoreLook(name, locks, nameOf, this.redact !== undefined, stores.size));
    this.looks = new Map(looks.map((look) => [look.name, look]));
  }

  /** All that a page draws. @param store only of this one. @param query only rows with these words. @throws {Refused} */
  async state(store: unknown, query: unknown, me: PageState['me']): Promise<PageState> {
    if (me.mayRelease && me.by === null) this.warnOnce();
    const all = [...this.looks.values()];
    const looks = store === undefined || store === '' ? all : [this.lookOf(store)];
    const text = query ?? '';
    if (typeof text !== 'string' || text.length > LONGEST_SEARCH)
      throw new Refused(422, `"q" must have at most ${LONGEST_SEARCH} characters.`);
    const isFirst = all.some(({ state: { at, isAway } }) => at === null && !isAway);
    await isSettledWithin(isFirst ? PATIENCE.first : PATIENCE.next, Promise.all(all.map((look) => look.refresh())));
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const found = await Promise.all(looks.map(async (look) => (words.length > 0 ? look.search(words) : look.top)));
    const rows = found.flat().sort(byUrgency);
    const numbers = numbersOf(looks);
    return {
      version: VERSION,
      now: dateOf(now()),
      me,
      stores: all.map(({ state }) => state),
      numbers,
      alarms: [...looks.flatMap(({ alarms }) => alarms), ...lossesIn(numbers.lost)],
      processes: processesOf(looks),
      rows: rows.slice(0, MOST_ROWS).map(({ row }) => row),
      found: words.length > 0 ? rows.length : looks.reduce((sum, { state }) => sum + state.keys, 0),
      notes: looks.flatMap(({ notes }) => notes.all).sort((a, b) => b.at - a.at),
      advice: looks.flatMap(({ advice }) => advice.texts),
    };
  }

  /** @throws {Refused} */
  async key(store: unknown, name: unknown): Promise<KeyAnswer> {
    const look = this.lookOf(store);
    const askedAt = dateOf(now());
    const report = await this.answered(look.locks.inspect({ key: this.keyOf(look.locks, name) }));
    const { key, kind, at, fencingToken, permits = null, count = null, remaining, holders, holderCount, waiters, waiterCount } = report;
    const parties = holders.map((holder) => partyOf(holder, askedAt, look.hears, look.holder(key, holder.owner)));
    look.reported(report);
    return {
      ...{ store: look.name, key: this.nameOf(key), kind, at: dateOf(now()), fencingToken, permits, count },
      endsAt: remaining === null ? null : askedAt + remaining,
      holders: parties.map((party, index) => ({ ...party, isShared: holders[index]!.permits !== Infinity })),
      holderCount,
      waiters: waiters.flatMap((waiter) => this.waiterAnswers(waiter, look.hears, askedAt - at.getTime())),
      waiterCount,
      notes: look.notes.of(this.nameOf(key)),
      chain: look.chainFrom(report),
    };
  }

  /** @throws {Refused} */
  async release(body: unknown, by: string | null): Promise<ReleaseAnswer> {
    const { store, key: name, owner, token, reason, grace, keepFor } = Object(body) as Partial<ReleaseOrder>;
    const look = this.lookOf(store);
    checkReason(reason);
    checkNumber('grace', grace, LONGEST_GRACE);
    checkNumber('keepFor', keepFor, LONGEST_HOLD);
    if (typeof owner !== 'string' || (token !== null && !Number.isSafeInteger(token))) {
      throw new Refused(422, 'The owner and the token that were shown must be given.');
    }
    const key = this.keyOf(look.locks, name);
    this.mayOrder(by);
    const options = { owner, reason, grace, keepFor, ...(token != null && { token }), ...(by !== null && { by }) };
    const answer = await this.answered(look.locks.forceRelease({ key }, options));
    if (answer.outcome === 'gave back') look.ordered('gave back', key, owner, by, reason);
    await look.ask([key]);
    return answer;
  }

  /** Takes a free key, and keeps it for so long. @throws {Refused} */
  async hold(body: unknown, by: string | null): Promise<HoldAnswer> {
    const { store, key, for: length, reason } = Object(body) as Partial<HoldOrder>;
    const look = this.lookOf(store);
    const { locks } = look;
    checkReason(reason);
    checkNumber('for', length, LONGEST_HOLD, 1);
    if (typeof key !== 'string') throw new Refused(422, '"key" must be a string.');
    this.mayOrder(by);
    const { holdByHand } = await import('../operate/hold-by-hand.js');
    const whole = await this.answered(Promise.resolve().then(() => locks.mutex(key).key));
    const owner = await this.answered(holdByHand(locks.store, whole, length, [by, reason].filter(Boolean).join(': ')));
    if (owner !== null) {
      const line = `"${this.nameOf(whole)}" is held for ${length} ms by ${by ?? 'an operator'}: ${reason}`;
      locks.log.warn('NDL_HELD_BY_HAND', line, { key: whole, owner });
      await locks.store.inspector?.note(line).catch(() => undefined);
      look.ordered('held by hand', whole, owner, by, reason);
      await look.ask([whole]);
    }
    return { isHeld: owner !== null };
  }

  private warnOnce(): void {
    if (this.hasWarned) return;
    this.hasWarned = true;
    const line = 'The dashboard lets people without a name release keys: let "authorize" return { by }, or nobody knows later who did it.';
    [...this.looks.values()][0]?.locks.log.warn('NDL_NO_OPERATOR', line);
  }

  /** Equal callers of a process together. A process names the first ones, and says how many there are. */
  private waiterAnswers({ owner, app, host, pid, since, holding, report }: KeyWaiter, hears: boolean, ahead: number): WaiterAnswer[] {
    const callers = report ?? [{ since, holding, label: undefined, patienceLeft: undefined, waiting: 1 }];
    // Our clock, that of the store and that of the process may differ.
    const skew = ahead + since.getTime() - callers[0]!.since.getTime();
    const isSilent = hears && !report;
    const groups = new Map<string, WaiterAnswer>();
    for (const { label = null, since: from, patienceLeft, holding: held } of callers) {
      const names = held.map(({ key }) => this.nameOf(key));
      const id = JSON.stringify([label, names]);
      const first = { owner, app, host, pid, label, isSilent, since: from.getTime() + skew, patienceLeft, holding: names };
      groups.set(id, { ...(groups.get(id) ?? first), count: (groups.get(id)?.count ?? 0) + 1 });
    }
    const unnamed = (callers[0]?.waiting ?? 0) - callers.length;
    const [last] = [...groups].slice(-1);
    if (last && unnamed > 0) groups.set(last[0], { ...last[1], count: last[1].count + unnamed });
    return [...groups.values()];
  }

  private lookOf(store: unknown): StoreLook {
    const look = typeof store === 'string' ? this.looks.get(store) : undefined;
    if (!look) throw new Refused(404, 'There is no such store.');
    return look;
  }

  private nameOf(key: string): string {
    if (!this.redact) return key;
    const known = this.names.get(key);
    if (known !== undefined) return known;
    let name: string;
    try {
      name = this.redact(key);
    } catch {
      name = createHash('sha256').update(key).digest('hex');
    }
    if (this.names.size >= MOST_NAMES) for (const each of [this.names, this.keys]) each.clear();
    this.names.set(key, name);
    this.keys.set(name, key);
    return name;
  }

  /** Keys of other namespaces are not shown. */
  private keyOf(locks: Locks, name: unknown): string {
    const key = this.redact ? this.keys.get(name as string) : name;
    const namespace = locks.mutex('-').key.slice(0, -1);
    if (typeof key !== 'string' || !key.startsWith(namespace)) throw new Refused(404, 'There is no such key.');
    try {
      return checkKey(key);
    } catch (error) {
      throw new Refused(422, (error as Error).message);
    }
  }

  /** @throws {Refused} with the message of the library, unless it would show a key that is hidden. */
  private async answered<T>(asked: Promise<T>): Promise<T> {
    try {
      return await asked;
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      throw new Refused(error.transient ? 503 : 422, this.redact ? `It failed: ${error.code}.` : error.message);
    }
  }

  private mayOrder(by: string | null): void {
    const time = performance.now();
    if (time < (this.orderedAt.get(by) ?? -APART) + APART) throw new Refused(429, 'One order a second: try again.');
    for (const [person, at] of this.orderedAt) if (at + APART <= time) this.orderedAt.delete(person);
    this.orderedAt.set(by, time);
  }
}

function numbersOf(looks: readonly StoreLook[]): Numbers {
  const time = dateOf(now());
  const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0);
  const counts = looks.map(({ notes }) => notes.counts(time));
  const waits = looks.flatMap(({ census: { waitingSince }, state: { at } }) =>
    waitingSince === null || at === null ? [] : at - waitingSince,
  );
  return {
    held: sum(looks.map(({ census }) => census.held)),
    waiting: sum(looks.map(({ census }) => census.waiting)),
    longestWait: waits.length === 0 ? null : Math.max(...waits),
    lost: sum(counts.map(({ lost }) => lost)),
    timeouts: sum(counts.map(({ timeouts }) => timeouts)),
    failed: sum(counts.map(({ failed }) => failed)),
  };
}

/** A process may use several stores. While one of them does not answer, nothing is known of its processes. */
function processesOf(looks: readonly StoreLook[]): PageState['processes'] {
  const present = looks.filter(({ state }) => !state.isAway);
  const all = new Set(present.flatMap(({ census }) => [...census.processes.keys()]));
  const silent = [...all].filter((name) => present.some(({ census }) => census.processes.get(name)));
  return { known: all.size, silent };
}

function lossesIn(lost: number): PageAlarm[] {
  if (lost === 0) return [];
  return [{ kind: 'lost', text: `${lost} ${lost === 1 ? 'lease was' : 'leases were'} lost in the last five minutes: see the events.` }];
}
