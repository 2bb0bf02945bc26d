import type { LockKindName } from '../core/model/events.js';
import type { LockStore } from '../core/store/lock-store.js';
import { after } from '../core/util/clock.js';
import { Locks } from '../locks.js';
import type { Lock } from '../primitives/lock.js';
import { faultsOf, innerOf } from './faulty.store.js';

/** How {@link LockProbe.holdElsewhere} holds. */
export interface ElsewhereOptions {
  /** Milliseconds after which it is released. Default: it is held until `release()`. */
  for?: number;
  /** The first part of the holder's id, which errors show. Default `'elsewhere'`. */
  owner?: string;
  /** The kind of lock. Default `'mutex'`. */
  kind?: LockKindName;
  /** How many permits a semaphore has. Default 1. */
  permits?: number;
}

/** A key that is held as another process would hold it. It works with `await using`. */
export interface ElsewhereLease extends AsyncDisposable {
  /** The holder's id: what `LockTimeoutError.holder` shows. */
  readonly owner: string;
  /** Releases the key; repeated calls do nothing. */
  release(): Promise<void>;
}

/** Holds a key by other {@link Locks} over the same store, as another process has them. */
export async function holdElsewhere(store: LockStore, key: string, options: ElsewhereOptions = {}): Promise<ElsewhereLease> {
  const { for: length, owner: app = 'elsewhere', kind = 'mutex', permits = 1 } = options;
  // They do not close the store, which is the app's.
  const view = Object.create(innerOf(store), { close: { value: () => Promise.resolve() } }) as LockStore;
  const locks = new Locks(view, { app, logger: false });
  // One try: a test that waits for its own contention would hang.
  const sharedLock = (): Lock =>
    kind === 'semaphore' ? locks.semaphore(key, { permits }) : locks.readWriteLock(key)[kind as 'read' | 'write'];
  const lease = await (kind === 'mutex' ? locks.mutex(key) : sharedLock()).acquire({ waitTimeout: 0 });
  const release = async (): Promise<void> => {
    clearTimeout(timer);
    await lease.release();
    await locks.close();
  };
  faultsOf(store)?.elsewhere.push(release);
  const timer = length === undefined ? undefined : after(length, () => void release()).unref();
  return { owner: lease.owner, release, [Symbol.asyncDispose]: release };
}
