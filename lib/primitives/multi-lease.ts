import { onAbort } from '../core/util/abort.js';
import { LockLostError } from '../core/model/errors.js';
import type { Lease } from '../core/holding/lease.js';

/** One holding of several keys, or of one: it is what all of its leases are. It can be disposed of by `await using`. */
export class MultiLease implements AsyncDisposable {
  private controller: AbortController | undefined;
  private forget: readonly (() => void)[] = [];

  /** @internal They come from {@link MultiLock}. */
  constructor(
    /** One for each key, in the order in which they were taken: sorted by key. */
    readonly leases: readonly Lease[],
  ) {}

  /** All keys, namespaces included, joined by `', '`. */
  get key(): string {
    return this.leases.map(({ key }) => key).join(', ');
  }

  /** The owner ids, joined like the keys. */
  get owner(): string {
    return this.leases.map(({ owner }) => owner).join(', ');
  }

  /** Of a single key its fencing token; of several `null`, since each of the {@link leases} has its own. */
  get fencingToken(): number | null {
    const [first, ...others] = this.leases;
    return first && others.length === 0 ? first.fencingToken : null;
  }

  /** Aborts as soon as one of the leases is lost, or `maxHold` is over; its reason is a {@link LockLostError}. */
  get signal(): AbortSignal {
    const [first, ...others] = this.leases;
    if (first && others.length === 0) return first.signal;
    if (this.controller) return this.controller.signal;
    // Not by AbortSignal.any: up to Node 22 a signal that somebody listens to stays in memory for good.
    const controller = (this.controller = new AbortController());
    const lost = ({ signal }: Lease): void => controller.abort(signal.reason);
    for (const lease of this.leases) if (lease.signal.aborted) lost(lease);
    if (!controller.signal.aborted) this.forget = this.leases.map((lease) => onAbort(lease.signal, () => lost(lease)));
    return controller.signal;
  }

  /** @internal */
  get loss(): unknown {
    return this.leases.find(({ loss }) => loss !== undefined)?.loss;
  }

  get isReleased(): boolean {
    return this.leases.some(({ isReleased }) => isReleased);
  }

  /** Milliseconds for which all keys are surely still ours; 0 when one of them is lost or released. */
  remaining(): number {
    return Math.min(...this.leases.map((lease) => lease.remaining()));
  }

  /** @throws {LockLostError} if one of the leases is lost, run out or released. */
  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  /**
   * Renews all of them now. The watchdog does so by itself.
   *
   * @throws {LockLostError} if one of them is lost, released or over its `maxHold`.
   * @throws {StoreError} if a store gave no answer: the leases are held on for {@link remaining} ms.
   */
  async renew(): Promise<void> {
    const outcomes = await Promise.allSettled(this.leases.map((lease) => lease.renew()));
    const errors = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason as unknown);
    if (errors.length > 0) throw errors.find((error) => error instanceof LockLostError) ?? errors[0];
  }

  /**
   * Gives all keys back. It never rejects; see {@link Lease.release}.
   *
   * @returns `false` if one of them was no longer ours. Repeated calls get the first answer.
   */
  async release(): Promise<boolean> {
    const answers = await Promise.all(this.leases.map((lease) => lease.release()));
    for (const forget of this.forget) forget();
    return answers.every((wasOurs) => wasOurs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
