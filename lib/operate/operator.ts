import type { Engine } from '../core/engine.js';
import { checkOptions, integerFrom, oneOf, type Checks } from '../core/model/check-options.js';
import type { DoctorOptions, DoctorReport, LocksHealth } from '../core/model/doctor-report.js';
import { abortedBy, asStoreError, UnsupportedPrimitiveError } from '../core/model/errors.js';
import { checkKey } from '../core/model/key.js';
import type { ForceOptions, ForceReply, KeyEvent, KeyName, KeyReport, ListOptions, WatchOptions } from '../core/model/key-report.js';
import { ACQUIRE_CHECKS } from '../core/model/options.js';
import { ownerOf } from '../core/model/owner.js';
import type { Inspector, KeyState } from '../core/store/inspector.js';
import { examine } from './doctor/doctor.js';
import { forceRelease } from './force-release.js';
import { healthOf } from './health.js';
import { keyReportOf } from './key-reports.js';
import type { Entry } from './messages.js';
import { OperatorResponder } from './operator-responder.js';
import { askAll, watchAll, type KnownEvents, type Told } from './other-processes.js';
import { SlowWaits } from './slow-waits.js';

const BATCH = 64;
/** Keys that the library takes for itself, such as that of the doctor. They are in no list. */
const OWN = 'nestjs-distributed-lock:';
/** Whether a key is in the state that `list` searches. */
const STATES: Readonly<Record<NonNullable<ListOptions['state']>, (report: KeyReport) => boolean>> = {
  held: ({ holderCount }) => holderCount > 0,
  waited: ({ waiterCount }) => waiterCount > 0,
  used: ({ kind, waiterCount }) => waiterCount > 0 || (kind !== 'free' && kind !== 'foreign'),
};
const WATCH_CHECKS: Checks = {
  pattern: (value) => (typeof value === 'string' && value !== '' ? undefined : 'a string that is not empty'),
  signal: ACQUIRE_CHECKS.signal,
};
const LIST_CHECKS: Checks = { ...WATCH_CHECKS, state: oneOf(...Object.keys(STATES)), olderThan: integerFrom(0), limit: integerFrom(1) };
/** With these limits a request is never longer than what processes read. */
const textOf =
  (least: number, most: number) =>
  (value: unknown): string | undefined =>
    typeof value === 'string' && value.length >= least && value.length <= most ? undefined : `a string of ${least} to ${most} characters`;
const FORCE_CHECKS: Checks = {
  // With `kept:` it is a holder that the store has written for a minHold, not an owner.
  owner: (value) => (typeof value === 'string' && ownerOf(value) === value ? undefined : 'an owner id'),
  token: integerFrom(0),
  reason: textOf(1, 4_096),
  by: textOf(0, 256),
  grace: integerFrom(0),
  keepFor: integerFrom(0),
};

/** Answers the questions of operators to one {@link Locks}. */
export class Operator {
  /** Answers the operators of other processes. */
  readonly responder: OperatorResponder;
  readonly slowWaits: SlowWaits;

  constructor(readonly engine: Engine) {
    this.responder = new OperatorResponder(engine.queues, engine.store.bus, engine.past);
    this.slowWaits = new SlowWaits(engine.queues);
  }

  /** @throws {UnsupportedPrimitiveError} */
  get inspector(): Inspector {
    const { inspector, name } = this.engine.store;
    if (inspector) return inspector;
    throw new UnsupportedPrimitiveError(`The ${name} store has no inspection.`);
  }

  async inspect(key: KeyName): Promise<KeyReport> {
    const [report] = await this.inspectAll([this.fullKey(key)]);
    return report as KeyReport;
  }

  /** The reports of up to 64 keys, namespace included. */
  async inspectAll(keys: readonly string[]): Promise<KeyReport[]> {
    const [states, { entries }] = await Promise.all([this.look(keys), askAll(this, keys)]);
    const known = byKey(entries);
    return states.map((state) => keyReportOf(state, known.get(state.key)));
  }

  /** The reports of all processes on all of their keys, and their events since those that are known, which it adds. */
  ask(known: KnownEvents): Promise<Told> {
    return askAll(this, undefined, known);
  }

  /** @param told what processes have just said, if they were asked. */
  async *list(options: ListOptions = {}, told?: Told): AsyncGenerator<KeyReport, void, void> {
    checkOptions(options, 'Locks.list', LIST_CHECKS);
    const { pattern = '*', state = 'held', olderThan = 0, limit = 1000, signal } = options;
    const matches = this.matcherOf(pattern);
    const start = this.engine.namespace + (/^[^*?]*/.exec(pattern)?.[0] ?? '');
    const entries = byKey((told ?? (await askAll(this))).entries);
    const seen = new Set<string>();
    let left = limit;
    for await (const keys of this.inspector.keys(start, state === 'used')) {
      const news = [...new Set(keys)].filter((key) => matches(key) && !seen.has(key));
      for (const key of news) seen.add(key);
      for (let from = 0; from < news.length; from += BATCH) {
        if (signal?.aborted) throw abortedBy(signal, start);
        for (const known of await this.look(news.slice(from, from + BATCH))) {
          const report = keyReportOf(known, entries.get(known.key));
          if (!STATES[state](report) || !isOlderThan(report, olderThan)) continue;
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
    yield* watchAll(this, this.matcherOf(pattern), signal);
  }

  async forceRelease(key: KeyName, options: ForceOptions): Promise<ForceReply> {
    checkOptions(options ?? null, 'Locks.forceRelease', FORCE_CHECKS, 'reason');
    return forceRelease(this, this.fullKey(key), options);
  }

  async doctor(options?: DoctorOptions): Promise<DoctorReport> {
    const { store, namespace, runtime } = this.engine;
    runtime.assertOpen('doctor');
    return examine(store, namespace, () => runtime.createOwner(), options);
  }

  health(within: number): Promise<LocksHealth> {
    return healthOf(this.engine, within);
  }

  /**
   * The states of keys. Keys that cannot be read are left out, if there are others: a name that another program has made, or a key that this user may
   * not read, must not end a search.
   *
   * @throws {StoreError}
   */
  async look(keys: readonly string[]): Promise<KeyState[]> {
    try {
      return await this.inspector.inspect(keys);
    } catch (cause) {
      const error = asStoreError(cause, keys[0] ?? '');
      if (keys.length === 1 || error.transient) throw error;
      const looks = await Promise.allSettled(keys.map((key) => this.look([key])));
      const states = looks.flatMap((look) => (look.status === 'fulfilled' ? look.value : []));
      if (states.length === 0) throw error;
      return states;
    }
  }

  private fullKey(key: KeyName): string {
    const { engine } = this;
    const full = typeof key === 'object' && key !== null ? checkKey(key.key) : engine.fullKey(key);
    engine.runtime.assertOpen(full);
    return full;
  }

  /** @throws {LockAbortedError} when the locks are closed. */
  private matcherOf(pattern: string): (key: string) => boolean {
    const { namespace, runtime } = this.engine;
    runtime.assertOpen(namespace + pattern);
    return (key) => key.startsWith(namespace) && !key.startsWith(OWN, namespace.length) && isLike(key.slice(namespace.length), pattern);
  }
}

/** Whether a text has a pattern. No regular expression, which may try for years: of the stars, only the last one that was met is tried again. */
function isLike(text: string, pattern: string): boolean {
  let [at, next, star, tried] = [0, 0, -1, 0];
  while (at < text.length) {
    if (pattern[next] === '*') {
      star = next++;
      tried = at;
    } else if (pattern[next] === '?' || pattern[next] === text[at]) {
      next++;
      at++;
    } else {
      if (star < 0) return false;
      next = star + 1;
      at = ++tried;
    }
  }
  return !/[^*]/.test(pattern.slice(next));
}

function byKey(entries: readonly Entry[]): Map<string, Entry[]> {
  const all = new Map<string, Entry[]>();
  for (const entry of entries) {
    const known = all.get(entry.key);
    if (known) known.push(entry);
    else all.set(entry.key, [entry]);
  }
  return all;
}

/** Whether a holder or a caller is, as far as it is known. */
function isOlderThan({ at, holders, waiters }: KeyReport, age: number): boolean {
  return age === 0 || [...holders, ...waiters].some(({ since }) => since !== null && at.getTime() - since.getTime() >= age);
}
