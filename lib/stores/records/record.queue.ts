import { asStoreError, StoreError } from '../../core/model/errors.js';
import { RequestDeadlines, type TimedRequest } from '../../core/store/request-deadlines.js';
import { idle, now } from '../../core/util/clock.js';
import { detached } from '../../core/util/detached.js';
import { LinkedEntry } from '../../core/util/linked-list.js';
import { ChangeBatcher } from './change.batcher.js';
import { RecordClock } from './record.clock.js';
import { TOUCH, VOID, type Change, type Found, type Message, type RecordTable } from './record.table.js';
import { inPieces, recordOf } from './record.texts.js';
import { RecordWork } from './record.work.js';

/** How the verbs of all locks reach the records. */
export interface RecordQueue {
  /**
   * Does a step on the record of a key. It may be done several times, on newer records; only the last time counts.
   *
   * @param needsFence whether the step must know the last token of the key.
   */
  ask<Reply>(key: string, step: (work: RecordWork) => Reply, needsFence?: boolean): Promise<Reply>;
}

/** Most keys whose record is remembered. */
const MOST_KNOWN = 10_000;
/** After so many conflicts in a row it is likely that another process is faster each time. */
const MANY_CONFLICTS = 16;
const LONGEST_PAUSE = 500;
/** Milliseconds. A request that takes so long has waited for other requests. */
const SLOW = 20;
/** Characters of a record that many processes use. One that was seen so many milliseconds ago is likely to be outdated. */
const BUSY_RECORD = 3000;
const BUSY_LIFE = 100;

class Ask extends LinkedEntry<Ask> implements TimedRequest<Ask> {
  endsAt = 0;
  isSent = false;
  /** How often another process has changed the row first. */
  conflicts = 0;
  /** Called when it ends without an answer. */
  onLate: (() => void) | undefined;

  constructor(
    readonly step: (work: RecordWork) => unknown,
    readonly needsFence: boolean,
    readonly resolve: (reply: never) => void,
    readonly reject: (error: unknown) => void,
  ) {
    super();
  }
}

/** The row of a key as this process saw it last. */
interface Seen extends Pick<Found, 'version' | 'record' | 'fence'> {
  readonly at: number;
  /** A request of unknown outcome may still arrive. */
  readonly mayBeOutdated?: boolean;
}

/** Stands for the row of a key that was not seen yet. */
const UNSEEN: Seen = { version: VOID, record: null, fence: 0, at: 0 };

type Outcome = { readonly reply: unknown } | { readonly error: unknown };

/**
 * Makes one change of a key at a time, and the next one for all requests of this process that have come meanwhile: so the callers of a process never
 * conflict with each other. The row that was seen last is the first guess; if it is right, one exchange is enough.
 */
export class TableRecordQueue implements RecordQueue {
  /** The requests that wait, for each key that is being served. */
  private readonly waiting = new Map<string, Ask[]>();
  /** In the order of their last use. */
  private readonly seen = new Map<string, Seen>();
  private readonly deadlines: RequestDeadlines<Ask>;

  private readonly clock: RecordClock;
  private readonly batcher: ChangeBatcher;

  constructor(private readonly table: RecordTable) {
    this.clock = new RecordClock(table.observedTime);
    this.batcher = new ChangeBatcher(table, this.clock);
    this.deadlines = new RequestDeadlines(table.requestTimeout, (ask) => this.late(ask));
  }

  ask<Reply>(key: string, step: (work: RecordWork) => Reply, needsFence = false): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      const ask = new Ask(step, needsFence, resolve, reject);
      this.deadlines.begin(ask);
      const waiting = this.waiting.get(key);
      if (waiting) return void waiting.push(ask);
      this.waiting.set(key, [ask]);
      detached(() => void this.serve(key));
    });
  }

  private async serve(key: string): Promise<void> {
    for (let asks = this.waiting.get(key) ?? []; asks.length > 0; asks = this.waiting.get(key) ?? []) {
      this.waiting.set(key, []);
      try {
        await this.settle(key, asks);
      } catch (cause) {
        const error = asStoreError(cause, key);
        if (!(error instanceof StoreError && error.isUnsent)) this.doubt(key);
        for (const ask of asks) if (this.deadlines.end(ask)) ask.reject(error);
      }
    }
    this.waiting.delete(key);
  }

  /**
   * Does the steps of all requests, until a change was made or nothing is to be changed.
   *
   * | the row as it was seen last | the steps change it | the table is asked | then |
   * |---|---|---|---|
   * | unknown, or likely to be outdated | – | to read it | again, on the row that was read |
   * | a guess | no | to read it | again, on the row that was read |
   * | just read | no | nothing | replies |
   * | a guess, or just read | yes | to change it: done | replies |
   * | a guess, or just read | yes | to change it: another version is there | again, on that row, after a pause that grows; after many times with a touch |
   */
  private async settle(key: string, asks: readonly Ask[]): Promise<void> {
    let [isFresh, isOld, mustTouch] = [false, isLikelyOutdated(this.lastOf(key)), false];
    for (let conflicts = 0; ;) {
      const live = asks.filter((ask) => this.deadlines.open.has(ask));
      if (live.length === 0) return;
      const seen = this.lastOf(key);
      const mustRead = isOld || mustTouch || !this.clock.isKnown || (seen === UNSEEN && live.some(({ needsFence }) => needsFence));
      const attempt = mustRead ? undefined : this.attempt(key, seen, live);
      if (attempt && !attempt.work.isChanged && isFresh) return this.reply(live, attempt.outcomes);
      const change = attempt?.work.isChanged ? attempt.change : readOf(key, mustTouch ? TOUCH : undefined);
      if (!Number.isSafeInteger(change.fence + change.tokens)) {
        throw new StoreError(`The fencing tokens of "${key}" are used up: its row has one that is too large.`, { key, transient: false });
      }
      const { basis } = this.clock;
      const sentAt = now();
      const found = await this.exchange(change, live);
      if (!found) return this.doubt(key);
      [isFresh, isOld, mustTouch] = [true, false, false];
      if (attempt && found.written) {
        this.remember(key, { version: found.version, record: change.record, fence: found.fence });
        if (found.time !== undefined && this.clock.isSetForward(found.time, basis)) {
          throw new StoreError("The store's clock was set forward.", { key, transient: true });
        }
        for (const { text } of attempt.own) this.table.wakeUps?.received(text);
        return this.reply(live, attempt.outcomes, change.tokens > 0 ? found.fence - change.fence : 0);
      }
      const { version, record, fence } = found;
      this.remember(key, { version: version === '' ? VOID : version, record, fence, mayBeOutdated: seen.mayBeOutdated });
      if (!attempt?.work.isChanged) continue;
      for (const ask of live) ask.conflicts++;
      const took = now() - sentAt;
      if (++conflicts === 1 && took < SLOW) continue;
      // The more processes want to change the record, the longer a request takes, and the more of them lose against one.
      await idle(Math.random() * Math.min(2 * conflicts * Math.max(took, 1), LONGEST_PAUSE));
      isOld = true;
      // A process that is faster each time would keep this one out for good. After a touch it has to read first. Two processes that touch would keep
      // each other from all changes, so touches become rarer.
      mustTouch = conflicts >= MANY_CONFLICTS && (conflicts & (conflicts - 1)) === 0;
    }
  }

  /** Does the steps on the row that was seen last. `own`: messages to this process. */
  private attempt(key: string, seen: Seen, asks: readonly Ask[]) {
    const record = seen.record === null ? undefined : recordOf(seen.record, key);
    const { time } = this.clock;
    const work = new RecordWork(key, record, time, seen.fence, seen.mayBeOutdated ? 3 * this.table.requestTimeout : 0);
    const outcomes = asks.map(({ step }): Outcome => {
      try {
        return { reply: step(work) };
      } catch (error) {
        return { error };
      }
    });
    const { written, tokens, fence, notBefore, isDurable } = work;
    const own: Message[] = [];
    const messages: Message[] = [];
    for (const [inbox, lines] of work.messages ?? []) {
      const texts = inbox === this.table.wakeUps?.inbox ? own : messages;
      for (const text of inPieces(lines)) texts.push({ inbox, text });
    }
    const change: Change = {
      key,
      expected: seen.version,
      ...written,
      notBefore,
      tokens,
      fence: tokens > 0 ? fence : 0,
      messages,
      isLazy: !isDurable,
    };
    return { work, outcomes, change, own };
  }

  /** Resolves to `undefined` when all requests have ended. */
  private exchange(change: Change, asks: readonly Ask[]): Promise<Found | undefined> {
    let left = asks.length;
    return new Promise((resolve, reject) => {
      const withdraw = this.batcher.send(change, resolve, reject);
      for (const ask of asks) {
        ask.isSent = true;
        ask.onLate = () => {
          if (--left > 0) return;
          // There is one change of a key at a time.
          withdraw();
          resolve(undefined);
        };
      }
    });
  }

  private reply(asks: readonly Ask[], outcomes: readonly Outcome[], shift = 0): void {
    for (const [index, ask] of asks.entries()) {
      if (!this.deadlines.end(ask)) continue;
      const outcome = outcomes[index] as Outcome;
      if ('error' in outcome) ask.reject(outcome.error);
      else ask.resolve(shifted(outcome.reply, shift) as never);
    }
  }

  private late(ask: Ask): void {
    this.deadlines.end(ask);
    const { requestTimeout, name } = this.table;
    const why = ask.conflicts > 1 ? `: other processes have changed the row first, ${ask.conflicts} times` : '';
    const error = ask.isSent
      ? new StoreError(`The ${name} store did not answer within ${requestTimeout} ms${why}.`, { transient: true })
      : new StoreError(`The ${name} store was not asked within ${requestTimeout} ms: earlier requests had no answer.`, {
          transient: true,
          isUnsent: true,
        });
    ask.reject(error);
    ask.onLate?.();
  }

  /** A request of unknown outcome may still arrive. */
  private doubt(key: string): void {
    this.clock.forget();
    this.remember(key, { ...this.lastOf(key), mayBeOutdated: true });
  }

  private lastOf(key: string): Seen {
    return this.seen.get(key) ?? UNSEEN;
  }

  private remember(key: string, seen: Omit<Seen, 'at'>): void {
    this.seen.delete(key);
    this.seen.set(key, { ...seen, at: now() });
    if (this.seen.size <= MOST_KNOWN) return;
    const [oldest = ''] = this.seen.keys();
    this.seen.delete(oldest);
  }
}

function isLikelyOutdated({ record, at }: Seen): boolean {
  return record !== null && record.length > BUSY_RECORD && now() > at + BUSY_LIFE;
}

function readOf(key: string, expected?: typeof TOUCH): Change {
  return { key, expected, record: null, endsAt: 0, notBefore: 0, tokens: 0, fence: 0, messages: [], isLazy: true };
}

/** Corrects the token of a reply: the table's last token was so much later than the guess. */
function shifted(reply: unknown, by: number): unknown {
  if (by === 0 || typeof reply !== 'object' || reply === null) return reply;
  const { token } = reply as { token?: unknown };
  return typeof token === 'number' ? { ...reply, token: token + by } : reply;
}
