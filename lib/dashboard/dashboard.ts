import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import type { ServerResponse } from 'node:http';
import { checkKey } from '../core/model/key.js';
import { LockError } from '../core/model/errors.js';
import type { KeyReport, KeyWaiter } from '../core/model/key-report.js';
import { partsOf } from '../core/model/owner.js';
import { now } from '../core/util/clock.js';
import type { Locks } from '../locks.js';
import type {
  FindAnswer,
  HoldAnswer,
  HoldOrder,
  KeyAnswer,
  Note,
  ReleaseAnswer,
  ReleaseOrder,
  RowName,
  WaiterAnswer,
} from './dashboard.protocol.js';
import { Hub } from './hub.js';
import { partyOf } from './live-table.js';
import { checkNumber, checkReason, Refused } from './refused.js';
import { scriptHash, styleHash } from './page.generated.js';

const LONGEST_HOLD = 7 * 24 * 3_600_000;
const LONGEST_GRACE = 60_000;
const MOST_RELEASED = 100;
/** Milliseconds between two orders of one person. */
const APART = 1000;
const LONGEST_SEARCH = 512;
/** Names that are remembered. */
const MOST_NAMES = 50_000;
/** Keys in a chain. */
const LONGEST_CHAIN = 20;

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
  private readonly hub: Hub;
  private readonly redact: ((key: string) => string) | undefined;
  /** The names of keys, and the keys behind them, if they are redacted. */
  private readonly names = new Map<string, string>();
  private readonly keys = new Map<string, string>();
  /** When each person gave the last order. */
  private readonly orderedAt = new Map<string | null, number>();
  private hasWarned = false;
  /** The stores that are searched now. */
  private readonly searched = new Set<Locks>();

  constructor(
    private readonly stores: ReadonlyMap<string, Locks>,
    options: { readonly redact?: (key: string) => string } = {},
  ) {
    this.redact = options.redact;
    this.hub = new Hub(stores, (key) => this.nameOf(key), this.redact !== undefined);
  }

  /** @param begin gives the response, when it is sure that it is used. @throws {Refused} */
  stream(begin: () => ServerResponse, me: { by: string | null; mayRelease: boolean }): void {
    if (this.hub.isClosed) throw new Refused(503, 'The process is ending.');
    if (me.mayRelease && me.by === null && !this.hasWarned) {
      this.hasWarned = true;
      const line =
        'The dashboard lets people without a name release keys: let "authorize" return { by }, or nobody knows later who did it.';
      [...this.stores.values()][0]?.log.warn('NDL_NO_OPERATOR', line);
    }
    const refusal = this.hub.refusal(me.by);
    if (refusal !== undefined) throw new Refused(429, refusal);
    const response = begin();
    // The page has gone meanwhile.
    if (response.destroyed || response.closed || !response.socket || response.socket.destroyed) return;
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    // It would never end.
    if (response.req?.method === 'HEAD') return void response.end();
    this.hub.open(response, { me });
  }

  /** @throws {Refused} */
  async key(store: unknown, name: unknown): Promise<KeyAnswer> {
    const locks = this.locksOf(store);
    const askedAt = now();
    const report = await this.answered(locks.inspect({ key: this.keyOf(locks, name) }));
    this.hub.reported(store as string, report, askedAt);
    // The store has answered before the processes, of which one may be silent.
    const leftOf = (time: number | null): number | null => time && Math.max(0, time - (now() - askedAt));
    const { kind, at, fencingToken, permits = null, count = null, remaining, holders, holderCount, waiters, waiterCount } = report;
    return {
      ...{ store: store as string, key: this.nameOf(report.key), kind, at: at.getTime(), fencingToken, permits, count },
      remaining: leftOf(remaining),
      holders: holders.map((holder) => {
        const { remaining: left, phase, permits: own } = holder;
        const before = this.hub.liveKey(store as string, report.key)?.holders.get(holder.owner);
        return { ...partyOf(holder, before), remaining: leftOf(left), phase, isShared: own !== Infinity };
      }),
      holderCount,
      waiters: waiters.flatMap((waiter) => this.waiterAnswers(waiter)),
      waiterCount,
      notes: this.hub.notesOf(store as string, this.nameOf(report.key)),
      chain: this.chainFrom(store as string, report),
    };
  }

  /** @throws {Refused} */
  async release(body: unknown, by: string | null): Promise<ReleaseAnswer> {
    const { store, keys, reason, grace, keepFor } = Object(body) as Partial<ReleaseOrder>;
    const locks = this.locksOf(store);
    checkReason(reason);
    checkNumber('grace', grace, LONGEST_GRACE);
    checkNumber('keepFor', keepFor, LONGEST_HOLD);
    if (!Array.isArray(keys) || keys.length === 0 || keys.length > MOST_RELEASED) {
      throw new Refused(422, `"keys" must be an array of 1 to ${MOST_RELEASED}.`);
    }
    const orders = (keys as unknown[]).map((each) => {
      const { key, owner, token } = Object(each) as Partial<ReleaseOrder['keys'][number]>;
      if (typeof owner !== 'string' || (token !== null && !Number.isSafeInteger(token))) {
        throw new Refused(422, 'Each of "keys" must have the owner and the token that were shown.');
      }
      return { key: this.keyOf(locks, key), owner, token };
    });
    this.mayOrder(by);
    return Promise.all(
      orders.map(async ({ key, owner, token }) => {
        const options = { owner, reason, grace, keepFor, ...(token != null && { token }), ...(by !== null && { by }) };
        const refused = ({ message: reason }: Refused) => ({ outcome: 'failed' as const, holder: null, reason });
        const answer = await this.answered(locks.forceRelease({ key }, options)).catch(refused);
        if (answer.outcome === 'gave back') this.note(store as string, key, 'gave back', by, reason);
        return { key: this.nameOf(key), ...answer };
      }),
    );
  }

  /** Takes a free key, and keeps it for so long. @throws {Refused} */
  async hold(body: unknown, by: string | null): Promise<HoldAnswer> {
    const { store, key, for: length, reason } = Object(body) as Partial<HoldOrder>;
    const locks = this.locksOf(store);
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
      this.note(store as string, whole, 'held by hand', by, reason);
      void this.hub.followerOf(store as string)?.ask([whole]);
    }
    return { isHeld: owner !== null };
  }

  /** Asks the store for keys in use that have this text, and puts them into the table. @throws {Refused} */
  async find(store: unknown, text: unknown): Promise<FindAnswer> {
    const locks = this.locksOf(store);
    const follower = this.hub.followerOf(store as string);
    if (!follower)
      throw new Refused(409, 'This process has no page open: behind a load balancer, all requests of a page must reach the same process.');
    if (typeof text !== 'string' || text.trim() === '' || text.length > LONGEST_SEARCH) {
      throw new Refused(422, `"text" must have 1 to ${LONGEST_SEARCH} characters.`);
    }
    if (this.redact) {
      const reports = await follower.ask([this.keyOf(locks, text.trim())]);
      return { found: reports.filter(({ kind, waiterCount }) => kind !== 'free' || waiterCount > 0).length, isWhole: true };
    }
    if (this.searched.has(locks)) throw new Refused(429, 'Another search is under way.');
    this.searched.add(locks);
    return this.answered(follower.find(text.trim())).finally(() => this.searched.delete(locks));
  }

  close(): void {
    this.hub.close();
  }

  private note(store: string, key: string, event: Note['event'], by: string | null, reason: string): void {
    const here = { app: 'dashboard', host: hostname(), pid: process.pid };
    this.hub.noted(store, { event, key, reason, at: new Date(), ...here, by: by ?? undefined });
  }

  private waiterAnswers({ owner, app, host, pid, since, holding, told }: KeyWaiter): WaiterAnswer[] {
    const common = { owner, app, host, pid, isSilent: told === undefined };
    const callers = told ?? [{ since, holding, label: undefined, patienceLeft: undefined }];
    return callers.map((caller) => ({
      ...common,
      label: caller.label ?? null,
      since: caller.since.getTime(),
      patienceLeft: caller.patienceLeft,
      holding: caller.holding.map(({ key }) => this.nameOf(key)),
    }));
  }

  /** The key, what its holder waits for, and so on. */
  private chainFrom(store: string, report: KeyReport): RowName[] {
    const chain: string[] = [];
    for (let next: KeyReport | undefined = report; next && !chain.includes(next.key) && chain.length < LONGEST_CHAIN;) {
      chain.push(next.key);
      const uuids = next.holders.map(({ owner }) => partsOf(owner)?.uuid);
      const isHeldBy = ({ told, holding }: KeyWaiter): boolean =>
        [...holding, ...(told ?? []).flatMap((each) => each.holding)].some(({ uuid }) => uuids.includes(uuid));
      next = this.hub.followerOf(store)?.reports.find(({ waiters }) => waiters.some(isHeldBy));
      if (next && chain.includes(next.key)) chain.push(next.key);
    }
    return chain.map((key) => ({ store, key: this.nameOf(key) }));
  }

  private locksOf(store: unknown): Locks {
    const locks = typeof store === 'string' ? this.stores.get(store) : undefined;
    if (!locks) throw new Refused(404, 'There is no such store.');
    return locks;
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
