import type { DistributedLockInterceptor } from '../aspect/distributed-lock.interceptor.js';
import { INTERCEPTOR_PROPERTY } from '../distributed-lock.tokens.js';

/** An app that may have instances into which Nest does not inject properties: those of factories and values. */
export interface Adopter {
  readonly interceptor: DistributedLockInterceptor;
  /** Adopts the instances that were added to the app since the last call. */
  explore(): void;
}

const SLOT = Symbol.for('nestjs-distributed-lock:adopted');
interface Adoption {
  /** The apps of an instance from a factory or a value, in the order in which they adopted it. */
  readonly adopted: WeakMap<object, readonly Enrolment[]>;
  /** The open apps. The references are weak because a test may never close its app. */
  readonly open: Set<WeakRef<Enrolment>>;
}
const { adopted, open } = ((globalThis as { [SLOT]?: Adoption })[SLOT] ??= { adopted: new WeakMap(), open: new Set() });

/** The link from instances to an app. An instance may outlive the app, so the link is cut when the app has closed. */
export class Enrolment {
  /** False once the app begins to close. From then on an instance that another open app also has is locked in that app. */
  isOpen = true;
  private readonly entry = new WeakRef(this);

  /** @param adopter `undefined` when the app has closed. */
  constructor(public adopter: Adopter | undefined) {
    open.add(this.entry);
  }

  /** The app begins to close. */
  leave(): void {
    this.isOpen = false;
    open.delete(this.entry);
  }

  /** The app has closed. */
  end(): void {
    this.adopter = undefined;
  }
}

/** Makes the app lock the calls of an instance that Nest did not create itself. */
export function adopt(instance: object, enrolment: Enrolment): void {
  if (INTERCEPTOR_PROPERTY in instance) return;
  const known = (adopted.get(instance) ?? []).filter(({ adopter }) => adopter);
  if (!known.includes(enrolment)) adopted.set(instance, [...known, enrolment]);
}

/** The interceptor of the last open app that has the instance. If all of its apps are closing, the one of the last of them. */
export function adopterOf(instance: object): DistributedLockInterceptor | undefined {
  if (!lastOpen(instance)) exploreAll();
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

/** An instance may be created after the boot, or be called before the boot is over. Errors of other apps must not fail this call. */
function exploreAll(): void {
  for (const entry of open) {
    const enrolment = entry.deref();
    if (!enrolment) open.delete(entry);
    try {
      enrolment?.adopter?.explore();
    } catch {
      // The boot of that app has reported the error.
    }
  }
}
