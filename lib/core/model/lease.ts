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

  /** Milliseconds for which the lease is valid for sure; 0 when it is lost or released. */
  remaining(): number;

  /** @throws {LockLostError} if the lease is lost, expired or released. */
  assertHeld(): void;

  /**
   * Renews now, for a whole `keyTimeout`. The watchdog does this by itself, except for a lease with `renew: false`.
   *
   * @param keyTimeout another length from now on, in milliseconds, at least 10. A shorter one does not move the end earlier.
   * @throws {LockConfigError} if it is wrong.
   * @throws {LockLostError} if the lease is lost or released, or its `maxHold` is over.
   * @throws {StoreError} if the store did not answer: the lease stays valid for {@link remaining} ms.
   */
  renew(keyTimeout?: number): Promise<void>;

  /**
   * Hands the key over to another process, which takes it by `locks.adopt(ticket)`. The lease is over for this process: nothing is released, and nothing
   * was lost, so its signal does not abort.
   *
   * @param options `within`: milliseconds, from 10, after which the key is free if nobody adopts it; later where its `minHold` ends later.
   * @returns the ticket, a text that can be used once. It is worth nothing without access to the store.
   * @throws as {@link renew}, and the reason of the signal if the holder was asked to end. {@link LockConfigError} if a nested call holds the key, too; {@link UnsupportedPrimitiveError} if this is not the lease of
   * one mutex, or the store cannot do that.
   */
  handOver(options: { within: number }): Promise<string>;

  /**
   * Releases the key. If the store does not answer, it does not reject: the release is repeated in the background until the lease has expired.
   *
   * @returns `false` if the lease was already lost, or was handed over. Repeated calls get the first answer.
   * @throws {LockConfigError} only where a fence guard with `onOpenTransaction: 'throw'` finds a transaction open. The key is released all the same.
   */
  release(): Promise<boolean>;
}

/**
 * One holding of one or several keys. `key` and `owner` are those of all leases, joined by `', '`; `fencingToken` is `null` unless there is one key,
 * because each lease has its own; `remaining()` is the shortest; `release()` releases all keys.
 */
export interface MultiLease extends Lease {
  /** One for each key, in the order of the keys. */
  readonly leases: readonly Lease[];
}
