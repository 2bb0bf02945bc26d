import { heldLeases } from '../core/holding/call-chain.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import { abortedBy, LockAbortedError, configError, LockLostError, stopped, unanswered, type LockError } from '../core/model/errors.js';
import type { Lease } from '../core/model/lease.js';
import type { ResolvedOptions } from '../core/model/options.js';
import { untilAborted } from '../core/util/abort.js';
import { idle, now } from '../core/util/clock.js';
import { pollDelay } from '../core/waiting/backoff.js';
import { Caller, patienceOf } from '../core/waiting/caller.js';
import { takeable, type KeyLock } from './key-lock.js';
import { LockBase, type Lock } from './lock.js';
import { HeldLeases } from './multi-lease.js';

/**
 * Several locks as one, all or none, of one store or of several.
 *
 * They are taken in the order of their keys, so that no two multi-locks wait for each other. Locks of the same key at different stores are taken in the
 * order of the list, which must be the same everywhere.
 */
export class MultiLock extends LockBase<HeldLeases> {
  readonly all: readonly KeyLock[];

  /** @param mutex makes the lock of a key. */
  constructor(given: readonly (string | Lock)[], mutex: (key: string) => Lock, defaults: ResolvedOptions) {
    if (typeof given?.map !== 'function') throw configError('OPTION', 'A multi-lock is made of a list of keys and locks.');
    const takeables = given.map((lock): KeyLock | MultiLock => takeable(typeof lock === 'string' ? mutex(lock) : lock));
    const locks = withoutDuplicates(takeables.flatMap((lock) => ('all' in lock ? lock.all : [lock])));
    locks.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    super(locks.map(({ key }) => key).join(', '), defaults);
    if (locks.length === 0) throw configError('OPTION', 'A multi-lock needs at least one key.');
    this.all = locks;
  }

  async take(options: ResolvedOptions, guardsBody: boolean): Promise<HeldLeases> {
    const call = new MultiCall(options, guardsBody, Math.max(...this.all.map(({ queues }) => queues.runtime.requestTimeout)));
    try {
      return await this.takeAll(call);
    } catch (error) {
      throw call.reasonOf(error, this.key);
    } finally {
      call.end();
    }
  }

  holding<T>(lease: HeldLeases, work: () => T): T {
    // They are in the order of the locks.
    return lease.leases.reduceRight((inner, each, index) => () => this.all[index]!.holding(each, inner, lease), work)();
  }

  private async takeAll(call: MultiCall): Promise<HeldLeases> {
    for (let round = 1; ; round++) {
      const leases: HeldLease[] = [];
      try {
        for (const lock of this.all) leases.push(await lock.take(this.optionsOf(call), call.guardsBody, [...leases]));
        const failure = this.all.length > 1 ? await begin(leases, call.options, this.key) : undefined;
        for (const lease of leases) lease.partOf = 'multi-lock';
        if (!failure) return new HeldLeases(leases);
        if (call.isOverdue || !(failure instanceof LockLostError || failure.transient)) throw failure;
      } catch (error) {
        await call.release(leases);
        throw error;
      }
      await call.release(leases);
      await this.pause(round, call);
    }
  }

  /** @throws {LockAbortedError} when the locks of one of them are being closed, which waits only for work under way. */
  private async pause(round: number, { options, left }: MultiCall): Promise<void> {
    const { retryInterval, signal } = options;
    const isUnderLock = heldLeases().length > 0;
    const stops = this.all.map(({ queues: { runtime } }) => (isUnderLock ? runtime.closed : runtime.stopping));
    await idle(Math.min(pollDelay(round, retryInterval, -1), left), [signal, ...stops], true);
    if (stops.some(({ aborted }) => aborted)) throw stopped(this.key);
  }

  /** For one of several locks: with the wait timeout that is left, and without the times that count from the moment when all are held. */
  private optionsOf({ options, left }: MultiCall): ResolvedOptions {
    const own = { ...options, waitTimeout: left };
    return this.all.length === 1 ? own : { ...own, minHold: 0, maxHold: undefined };
  }
}

/**
 * One caller's attempt to take several locks. All of its requests end when its wait timeout and one `requestTimeout` are over, or at once when its
 * signal aborts.
 */
class MultiCall extends Caller<{ readonly patience: number }> {
  /** The caller's options, with a signal that ends all requests in flight. */
  readonly options: ResolvedOptions & { readonly signal: AbortSignal };
  private isLate = false;

  constructor(
    options: ResolvedOptions,
    readonly guardsBody: boolean,
    requestTimeout: number,
  ) {
    super({ patience: patienceOf(options) });
    const over = new AbortController();
    const { signal } = options;
    this.options = { ...options, signal: over.signal };
    if (signal?.aborted) over.abort(signal.reason);
    else if (signal) this.listen(signal, () => over.abort(signal.reason));
    this.limit(() => {
      this.grant(requestTimeout, () => {
        this.isLate = true;
        over.abort();
      });
    });
  }

  /** Milliseconds of the wait timeout that are left. */
  get left(): number {
    return Math.max(0, this.settings.patience - this.waited);
  }

  /** Releases the leases, and waits for the replies while the caller may wait: until then another try would find the keys taken. */
  async release(leases: Iterable<Lease>): Promise<void> {
    const released = Promise.all([...leases].map((lease) => lease.release()));
    const { signal } = this.options;
    if (!signal.aborted) await untilAborted(released, signal);
  }

  /** Why there is no lease. */
  reasonOf(error: unknown, key: string): unknown {
    return this.isLate && error instanceof LockAbortedError && error.reason === 'signal' ? unanswered(key) : error;
  }
}

/**
 * `minHold` and `maxHold` count from the moment when all are held: a `minHold` of some would delay other callers without use.
 *
 * @returns why one of them is not held, or cannot be kept. It may have been lost while the others were waited for.
 */
async function begin(leases: readonly HeldLease[], options: ResolvedOptions, key: string): Promise<LockError | undefined> {
  const start = now();
  const { minHold, signal } = options;
  try {
    await untilAborted(Promise.all(leases.map((lease) => lease.turn.cover(minHold))), signal);
    if (signal?.aborted) return abortedBy(signal, key);
    for (const lease of leases) lease.assertHeld();
  } catch (error) {
    return error as LockError;
  }
  for (const lease of leases) lease.begin(options, start);
  return undefined;
}

/** @throws {LockConfigError} if two of them cannot be held at the same time. */
function withoutDuplicates(given: readonly KeyLock[]): KeyLock[] {
  const locks: KeyLock[] = [];
  for (const lock of given) {
    const relations = locks.map((other) => lock.relationTo(other));
    if (relations.includes('rival')) {
      const message = `A multi-lock holds "${lock.key}" in two ways: it would wait for itself.`;
      throw configError('DEADLOCK', message, { key: lock.key });
    }
    if (!relations.includes('same')) locks.push(lock);
  }
  return locks;
}
