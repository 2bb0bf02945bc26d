import { onAbort, untilAborted } from '../core/util/abort.js';
import { after, now } from '../core/util/clock.js';
import { abortedBy, LockConfigError, LockLostError, LockTimeoutError, stopped, type LockError } from '../core/model/errors.js';
import { runHolding } from '../core/holding/call-chain.js';
import type { HeldLease } from '../core/holding/held-lease.js';
import type { ResolvedOptions } from '../core/model/options.js';
import { patienceOf, pollDelay } from '../core/waiting/backoff.js';
import type { KeyLock } from './key-lock.js';
import { LockBase } from './lock.js';
import { MultiCall } from './multi-call.js';
import { HeldLeases } from './multi-lease.js';

/**
 * Several locks as one: all of them or none, of one store or of many.
 *
 * They are taken in the order of their keys, whatever the order in which they were given, so that no two multi-locks wait for each other. Locks of
 * the same key at different stores have no such order: one of them is waited for, and the others are only tried; where one is refused, all of that key
 * are given back, and that one is waited for first.
 */
export class MultiLock extends LockBase<HeldLeases> {
  /** By key; several in a row are of the same key at different stores. */
  private readonly groups: readonly (readonly KeyLock[])[];
  private readonly size: number;

  constructor(given: readonly (KeyLock | MultiLock)[], defaults: ResolvedOptions) {
    const each = given.flatMap((lock) => (lock instanceof MultiLock ? lock.groups.flat() : [lock]));
    const locks = withoutDuplicates(each).sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    super(locks.map(({ key }) => key).join(', '), defaults);
    if (locks.length === 0) throw new LockConfigError('A multi-lock needs at least one key.');
    this.size = locks.length;
    this.groups = [...new Set(locks.map(({ key }) => key))].map((key) => locks.filter((lock) => lock.key === key));
  }

  async take(options: ResolvedOptions, guardsBody: boolean): Promise<HeldLeases> {
    const deadline = now() + patienceOf(options);
    const requestTimeout = Math.max(...this.groups.flat().map((lock) => lock.queues.runtime.requestTimeout));
    const call = new MultiCall(this.key, options, guardsBody, deadline, requestTimeout);
    try {
      return await this.takeAll(call);
    } catch (error) {
      throw call.reasonOf(error);
    } finally {
      call.end();
    }
  }

  holding<T>(lease: HeldLeases, work: () => T): T {
    return lease.leases.reduceRight((inner, each) => () => runHolding(each, inner, lease), work)();
  }

  private async takeAll(call: MultiCall): Promise<HeldLeases> {
    for (let round = 1; ; round++) {
      const leases: HeldLease[] = [];
      try {
        for (const group of this.groups) leases.push(...(await this.takeGroup(group, call)));
        const failure = this.size > 1 ? await begin(leases, call.options, this.key) : undefined;
        if (!failure) return new HeldLeases(leases);
        if (now() >= call.deadline || !(failure instanceof LockLostError || failure.transient)) throw failure;
      } catch (error) {
        await call.giveBack(leases);
        throw error;
      }
      await call.giveBack(leases);
      await this.pause(round, call);
    }
  }

  /** Resolves to a lease of each, in their order. */
  private async takeGroup(group: readonly KeyLock[], call: MultiCall): Promise<HeldLease[]> {
    let [first] = group as readonly [KeyLock];
    for (let round = 1; ; round++) {
      const leases = new Map<KeyLock, HeldLease>();
      leases.set(first, await first.take(this.optionsOf(call), call.guardsBody));
      const refusal = await this.tryOthers(group, leases, call);
      if (!refusal) return group.map((lock) => leases.get(lock) as HeldLease);
      await call.giveBack(leases.values());
      if (now() >= call.deadline || !(refusal.error instanceof LockTimeoutError || refusal.error.transient)) throw refusal.error;
      first = refusal.lock;
      // Others may be after the same ones from the other end.
      await this.pause(round, call);
    }
  }

  private async tryOthers(
    group: readonly KeyLock[],
    leases: Map<KeyLock, HeldLease>,
    call: MultiCall,
  ): Promise<{ lock: KeyLock; error: LockError } | undefined> {
    for (const lock of group) {
      if (leases.has(lock)) continue;
      try {
        leases.set(lock, await lock.take({ ...this.optionsOf(call), waitTimeout: 0 }, call.guardsBody));
      } catch (error) {
        // Only who holds it can tell that two stores lead to one place.
        const isOurs = error instanceof LockTimeoutError && [...leases.values()].some(({ owner }) => error.holder === owner);
        return { lock, error: isOurs ? waitsForItself(lock.key) : (error as LockError) };
      }
    }
    return undefined;
  }

  /** @throws {LockAbortedError} when the locks of one of them are being closed, which must not wait for us. */
  private async pause(round: number, { options, deadline }: MultiCall): Promise<void> {
    const { retryInterval, signal } = options;
    const stops = this.groups.flat().map(({ queues }) => queues.runtime.stopping);
    await idleUntil(Math.min(pollDelay(round, retryInterval, -1), deadline - now()), signal ? [signal, ...stops] : stops);
    if (stops.some(({ aborted }) => aborted)) throw stopped(this.key);
  }

  /** Of one of several: what is left of the patience. How long it is kept counts from when all are held. */
  private optionsOf({ options, deadline }: MultiCall): ResolvedOptions {
    const waitTimeout = Math.max(0, deadline - now());
    return this.size === 1 ? { ...options, waitTimeout } : { ...options, waitTimeout, minHold: 0, maxHold: undefined };
  }
}

/**
 * How long they are kept counts from now, if they are kept at all: a `minHold` of some would keep out whoever tries again.
 *
 * @returns why one of them is not held, or cannot be kept. It may have been lost while the others were waited for.
 */
async function begin(leases: readonly HeldLease[], options: ResolvedOptions, key: string): Promise<LockError | undefined> {
  const start = now();
  const { minHold, signal } = options;
  try {
    await untilAborted(Promise.all(leases.map((lease) => lease.cover(minHold))), signal);
    if (signal?.aborted) return abortedBy(signal, key);
    for (const lease of leases) lease.assertHeld();
  } catch (error) {
    return error as LockError;
  }
  for (const lease of leases) lease.begin(options, start);
  return undefined;
}

/** @throws {LockConfigError} where two of them cannot be held at the same time. */
function withoutDuplicates(given: readonly KeyLock[]): KeyLock[] {
  const locks: KeyLock[] = [];
  for (const lock of given) {
    const relations = locks.map((other) => lock.relationTo(other));
    if (relations.includes('rival')) {
      throw waitsForItself(lock.key);
    }
    if (!relations.includes('same')) locks.push(lock);
  }
  return locks;
}

function waitsForItself(key: string): LockConfigError {
  return new LockConfigError(`A multi-lock holds "${key}" in two ways, or by two stores that are one: it would wait for itself.`, { key });
}

/** Ends as soon as one of the signals aborts, too. */
function idleUntil(delay: number, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      for (const each of forget) each();
      resolve();
    };
    const timer = after(delay, end);
    const forget = signals.map((signal) => onAbort(signal, end));
    if (signals.some(({ aborted }) => aborted)) end();
  });
}
