import type { DistributedLockInterceptor } from './distributed-lock.interceptor.js';
import { INTERCEPTOR_PROPERTY } from './distributed-lock.tokens.js';

/** An app, as far as it has instances that Nest did not inject properties into. */
export interface Adopter {
  readonly interceptor: DistributedLockInterceptor;
  /** Adopts what has come to the app since it was last asked. */
  explore(): void;
}

const SLOT = Symbol.for('nestjs-distributed-lock:adopted');
interface Adoption {
  /** Of instances from factories and values; the last app that has it is the last of the list. */
  readonly adopted: WeakMap<object, readonly Enrolment[]>;
  /** The apps that are open. By weak reference: a test may never close its app. */
  readonly open: Set<WeakRef<Enrolment>>;
}
const { adopted, open } = ((globalThis as { [SLOT]?: Adoption })[SLOT] ??= { adopted: new WeakMap(), open: new Set() });

/** What instances know of an app. They may outlive the app, so this must not keep it in memory once it has closed. */
export class Enrolment {
  /** False when the app begins to close: an instance that another open app has, too, is locked there from then on. */
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

/** Lets an instance that Nest did not make itself be locked by this app. */
export function adopt(instance: object, enrolment: Enrolment): void {
  if (INTERCEPTOR_PROPERTY in instance) return;
  const known = (adopted.get(instance) ?? []).filter(({ adopter }) => adopter);
  if (!known.includes(enrolment)) adopted.set(instance, [...known, enrolment]);
}

/** That of the last open app that has the instance; while its last app closes, the one of that app. */
export function adopterOf(instance: object): DistributedLockInterceptor | undefined {
  if (!lastOpen(instance)) exploreAll();
  const enrolment = lastOpen(instance) ?? adopted.get(instance)?.findLast(({ adopter }) => adopter);
  return enrolment?.adopter?.interceptor;
}

/** Whether an app has had the instance. */
export function wasAdopted(instance: object): boolean {
  return adopted.has(instance);
}

function lastOpen(instance: object): Enrolment | undefined {
  return adopted.get(instance)?.findLast(({ isOpen }) => isOpen);
}

/** The instance may have come after the boot, or the boot may not be over. What another app fails at is not this call's business. */
function exploreAll(): void {
  for (const entry of open) {
    const enrolment = entry.deref();
    if (!enrolment) open.delete(entry);
    try {
      enrolment?.adopter?.explore();
    } catch {
      // Its own boot has told.
    }
  }
}
