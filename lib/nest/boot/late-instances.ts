import { processWide } from '../../core/util/process-wide.js';
import type { DistributedLockInterceptor } from '../aspect/distributed-lock.interceptor.js';

/** An app that may have instances into which Nest does not inject properties: those of factories and values. */
export interface Adopter {
  readonly interceptor: DistributedLockInterceptor;
  /** Adopts the instances that were added to the app since the last call. */
  explore(): void;
}

const { adopted, growing } = processWide('adopted', () => ({
  /** The apps of an instance from a factory or a value, in the order in which they adopted it. */
  adopted: new WeakMap<object, readonly Enrolment[]>(),
  /** The apps to which instances are being added. The references are weak because a boot may never end. */
  growing: new Set<WeakRef<Adopter>>(),
}));

/** The link from instances to an app. An instance may outlive the app, so the link is cut when the app has closed. */
export class Enrolment {
  /** False once the app begins to close. From then on an instance that another open app also has is locked in that app. */
  isOpen = true;

  /** @param adopter `undefined` when the app has closed. */
  constructor(public adopter: Adopter | undefined) {}
}

/** Until the returned function is called, a call of an unknown instance looks for it in this app: it may come before the boot is over. */
export function beginGrowth(adopter: Adopter): () => void {
  const entry = new WeakRef(adopter);
  growing.add(entry);
  return () => growing.delete(entry);
}

/** Makes the app lock the calls of an instance that Nest did not inject into. */
export function adopt(instance: object, enrolment: Enrolment): void {
  const known = (adopted.get(instance) ?? []).filter(({ adopter }) => adopter);
  if (!known.includes(enrolment)) adopted.set(instance, [...known, enrolment]);
}

/** The interceptor of the last open app that has the instance. If all of its apps are closing, the one of the last of them. */
export function adopterOf(instance: object): DistributedLockInterceptor | undefined {
  if (!lastOpen(instance)) exploreGrowing();
  const enrolment = lastOpen(instance) ?? adopted.get(instance)?.findLast(({ adopter }) => adopter);
  return enrolment?.adopter?.interceptor;
}

/** Whether any app has, or had, the instance. */
export function wasAdopted(instance: object): boolean {
  return adopted.has(instance);
}

function lastOpen(instance: object): Enrolment | undefined {
  return adopted.get(instance)?.findLast(({ isOpen }) => isOpen);
}

/** Errors of other apps must not fail this call. */
function exploreGrowing(): void {
  for (const entry of growing) {
    const adopter = entry.deref();
    if (!adopter) growing.delete(entry);
    try {
      adopter?.explore();
    } catch {
      // The boot of that app reports the error.
    }
  }
}
