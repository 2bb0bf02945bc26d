/**
 * One holding of one key. It is renewed until it is released, lost, or held for `maxHold`. It works with `await using`.
 */
export interface Lease extends AsyncDisposable {
  /** The key as the store knows it, namespace included. */
  readonly key: string;

  /** The random id under which the store knows the holder. */
  readonly owner: string;

  /**
   * A safe integer that only grows from one holding of a key to the next; `null` where the store cannot promise that. Send it with each write, and
   * let the resource refuse tokens that are smaller than the last one.
   */
  readonly fencingToken: number | null;

  /** Aborts when the lease is lost or `maxHold` is over; its reason is a {@link LockLostError}. */
  readonly signal: AbortSignal;

  /** Milliseconds for which the key is surely still ours; 0 when the lease is lost or released. */
  remaining(): number;

  /** @throws {LockLostError} if the lease is lost, run out or released. */
  assertHeld(): void;

  /**
   * Renews now, for a whole `keyTimeout`. The watchdog does this without being asked, except for a lease with `renew: false`.
   *
   * @param keyTimeout another length from now on, in milliseconds, at least 10. A shorter one does not bring the present end nearer.
   * @throws {LockConfigError} if it is wrong.
   * @throws {LockLostError} if the lease is lost or released, or its `maxHold` is over.
   * @throws {StoreError} if the store gave no answer: the lease stays valid for {@link remaining} ms.
   */
  renew(keyTimeout?: number): Promise<void>;

  /**
   * Gives the key back. It never rejects: if the store gives no answer, it is asked again in the background until the lease has run out.
   *
   * @returns `false` if the key was no longer ours. Repeated calls get the first answer.
   */
  release(): Promise<boolean>;
}
