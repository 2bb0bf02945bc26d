import { checkOptions, integerFrom, ofType, oneOf, type Checks } from '../model/check-options.js';
import { abortedBy, asStoreError, LockError, UnsupportedPrimitiveError } from '../model/errors.js';
import { checkKey } from '../model/key.js';
import type { ForceOptions, ForceReply, KeyEvent, KeyName, KeyReport, ListOptions, WatchOptions } from '../model/key-report.js';
import { ACQUIRE_CHECKS } from '../model/options.js';
import type { Bus, Inspector, KeyState } from '../store/inspector.js';
import type { LockStore } from '../store/lock-store.js';
import type { LockQueues } from '../waiting/lock-queues.js';
import { Desk } from './desk.js';
import { forceRelease } from './force-release.js';
import { reportOf } from './key-reports.js';
import { askAll } from './questions.js';
import { watchAll } from './watching.js';

const BATCH = 64;
const WATCH_CHECKS: Checks = {
  pattern: (value) => (typeof value === 'string' && value !== '' ? undefined : 'a string that is not empty'),
  signal: ACQUIRE_CHECKS.signal,
};
const LIST_CHECKS: Checks = {
  ...WATCH_CHECKS,
  state: oneOf('held', 'waited', 'used'),
  olderThan: integerFrom(0),
  limit: integerFrom(1),
};
/** With these limits a request is never longer than what processes read. */
const textOf =
  (least: number, most: number) =>
  (value: unknown): string | undefined =>
    typeof value === 'string' && value.length >= least && value.length <= most ? undefined : `a string of ${least} to ${most} characters`;
const FORCE_CHECKS: Checks = {
  owner: ofType('string'),
  token: integerFrom(0),
  reason: textOf(1, 4_096),
  by: textOf(0, 256),
  grace: integerFrom(0),
  keepFor: integerFrom(0),
};

/** The questions of operators about the locks of one store. */
export class Inspection {
  readonly bus: Bus | undefined;
  readonly desk: Desk;

  constructor(
    readonly queues: LockQueues,
    readonly store: LockStore,
    private readonly namespace: string,
  ) {
    this.bus = store.bus;
    this.desk = new Desk(queues, store.bus);
  }

  /** @throws {UnsupportedPrimitiveError} */
  get inspector(): Inspector {
    const { inspector, name } = this.store;
    if (inspector) return inspector;
    throw new UnsupportedPrimitiveError(`The ${name} store has no inspection.`);
  }

  async inspect(key: KeyName): Promise<KeyReport> {
    const keys = [this.fullKey(key)];
    const [states, told] = await Promise.all([this.look(keys), askAll(this, keys)]);
    return reportOf(states[0] as KeyState, told);
  }

  async *list(options: ListOptions = {}): AsyncGenerator<KeyReport, void, void> {
    checkOptions(options, 'Locks.list', LIST_CHECKS);
    const { pattern = '*', state = 'held', olderThan = 0, limit = 1000, signal } = options;
    this.queues.runtime.assertOpen(this.namespace + pattern);
    const matches = matcherOf(this.namespace, pattern);
    const start = this.namespace + (/^[^*?]*/.exec(pattern)?.[0] ?? '');
    const told = await askAll(this);
    const seen = new Set<string>();
    let left = limit;
    for await (const keys of this.inspector.keys(start, state === 'used')) {
      const news = [...new Set(keys)].filter((key) => matches.test(key) && !seen.has(key));
      for (const key of news) seen.add(key);
      for (let from = 0; from < news.length; from += BATCH) {
        if (signal?.aborted) throw abortedBy(signal, start);
        for (const known of await this.lookAtAny(news.slice(from, from + BATCH))) {
          const report = reportOf(known, told);
          if (!isInState(report, state) || (olderThan > 0 && ageOf(report) < olderThan)) continue;
          yield report;
          if (--left === 0) return;
        }
      }
      if (signal?.aborted) throw abortedBy(signal, start);
    }
  }

  async *watch(options: WatchOptions = {}): AsyncGenerator<KeyEvent, void, void> {
    checkOptions(options, 'Locks.watch', WATCH_CHECKS);
    const { pattern = '*', signal } = options;
    this.queues.runtime.assertOpen(this.namespace + pattern);
    yield* watchAll(this, matcherOf(this.namespace, pattern), signal);
  }

  async forceRelease(key: KeyName, options: ForceOptions): Promise<ForceReply> {
    checkOptions(options ?? null, 'Locks.forceRelease', FORCE_CHECKS, 'reason');
    return forceRelease(this, this.fullKey(key), options);
  }

  /** @throws {StoreError} */
  async look(keys: readonly string[]): Promise<KeyState[]> {
    try {
      return await this.inspector.inspect(keys);
    } catch (cause) {
      throw asStoreError(cause, keys[0] ?? '');
    }
  }

  /** Those that can be read: a name that another program has made, or a key that this user may not read, must not end a search. */
  private async lookAtAny(keys: readonly string[]): Promise<KeyState[]> {
    try {
      return await this.look(keys);
    } catch (error) {
      if (keys.length === 1 || (error instanceof LockError && error.transient)) throw error;
      const looks = await Promise.allSettled(keys.map((key) => this.look([key])));
      const states = looks.flatMap((look) => (look.status === 'fulfilled' ? look.value : []));
      if (states.length === 0) throw error;
      return states;
    }
  }

  private fullKey(key: KeyName): string {
    const full = typeof key === 'string' ? this.namespace + checkKey(key) : checkKey((Object(key) as { readonly key?: unknown }).key);
    this.queues.runtime.assertOpen(full);
    return full;
  }
}

function isInState({ kind, holderCount, waiterCount }: KeyReport, state: NonNullable<ListOptions['state']>): boolean {
  if (state === 'held') return holderCount > 0;
  return waiterCount > 0 || (state === 'used' && kind !== 'free' && kind !== 'foreign');
}

/** The age of the oldest holder or caller, as far as it is known. */
function ageOf({ at, holders, waiters }: KeyReport): number {
  const times = [...holders, ...waiters].map(({ since }) => since).filter((since) => since !== null);
  return at.getTime() - Math.min(...times.map((since) => since.getTime()), Infinity);
}

function matcherOf(namespace: string, pattern: string): RegExp {
  const escape = (text: string): string => text.replaceAll(/[\\^$.|+()[\]{}*?]/g, '\\$&');
  const parts = pattern.split(/([*?])/).map((part) => (part === '*' ? '.*' : part === '?' ? '.' : escape(part)));
  return new RegExp(`^${escape(namespace)}${parts.join('')}$`, 's');
}
