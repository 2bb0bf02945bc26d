import { EXCHANGED, processWide } from '../../core/util/process-wide.js';
import type { DistributedLockInterceptor } from '../aspect/distributed-lock.interceptor.js';

/** The link from instances to their app. An instance may outlive the app, so the interceptor is removed when the app has closed. */
export interface AppLink {
  interceptor: DistributedLockInterceptor | undefined;
  /** False once the app begins to close. From then on an instance that another open app also has is locked in that app. */
  isOpen: boolean;
}

interface Explorer {
  /** Adopts the instances that were added to the app since the last call. */
  explore(): void;
}

const { adopted, growing } = processWide(
  'adopted',
  () => ({
    /** The apps of an instance into which Nest did not inject, in the order in which they adopted it. */
    adopted: new WeakMap<object, readonly AppLink[]>(),
    /** The apps to which instances are being added. The references are weak because a boot may never end. */
    growing: new Set<WeakRef<Explorer>>(),
  }),
  EXCHANGED,
);

/** Until the returned function is called, a call of an unknown instance looks for it in this app: it may come before the boot is over. */
export function beginGrowth(explorer: Explorer): () => void {
  const entry = new WeakRef(explorer);
  growing.add(entry);
  return () => growing.delete(entry);
}

/** Makes the app lock the calls of an instance. */
export function adopt(instance: object, app: AppLink): void {
  const known = (adopted.get(instance) ?? []).filter(({ interceptor }) => interceptor);
  if (!known.includes(app)) adopted.set(instance, [...known, app]);
}

/**
 * The last open app that has the instance. If all of its apps are closing, the last that has not closed yet; if all have closed, any of them.
 * `undefined` if no app has ever had it.
 */
export function appOf(instance: object): AppLink | undefined {
  const isOpen = (app: AppLink): boolean => app.isOpen;
  let apps = adopted.get(instance);
  if (!apps?.some(isOpen)) {
    exploreGrowing();
    apps = adopted.get(instance);
  }
  return apps?.findLast(isOpen) ?? apps?.findLast(({ interceptor }) => interceptor) ?? apps?.[0];
}

function exploreGrowing(): void {
  for (const entry of growing) {
    try {
      entry.deref()?.explore();
    } catch {
      // The boot of that app reports the error, which must not fail a call of another app.
    }
    if (!entry.deref()) growing.delete(entry);
  }
}
