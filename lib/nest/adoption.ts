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
  readonly adopted: WeakMap<object, Adopter[]>;
  /** The apps that are open. By weak reference: a test may never close its app. */
  readonly open: Set<WeakRef<Adopter>>;
}
const { adopted, open } = ((globalThis as { [SLOT]?: Adoption })[SLOT] ??= { adopted: new WeakMap(), open: new Set() });

/** @returns what ends it. */
export function enrol(adopter: Adopter): () => void {
  const entry = new WeakRef(adopter);
  open.add(entry);
  return () => open.delete(entry);
}

/** Lets an instance that Nest did not make itself be locked by this app. */
export function adopt(instance: object, adopter: Adopter): void {
  if (INTERCEPTOR_PROPERTY in instance) return;
  const adopters = adopted.get(instance) ?? [];
  if (!adopters.includes(adopter)) adopted.set(instance, [...adopters, adopter]);
}

/** That of the last open app that has the instance. */
export function adopterOf(instance: object): DistributedLockInterceptor | undefined {
  const known = adopted.get(instance);
  if (!known) exploreAll();
  const adopters = known ?? adopted.get(instance) ?? [];
  const living = openAdopters();
  return (adopters.findLast((adopter) => living.includes(adopter)) ?? adopters.at(-1))?.interceptor;
}

/** The instance may have come after the boot, or the boot may not be over. What another app fails at is not this call's business. */
function exploreAll(): void {
  for (const adopter of openAdopters()) {
    try {
      adopter.explore();
    } catch {
      // Its own boot has told.
    }
  }
}

function openAdopters(): Adopter[] {
  const adopters: Adopter[] = [];
  for (const entry of open) {
    const adopter = entry.deref();
    if (adopter) adopters.push(adopter);
    else open.delete(entry);
  }
  return adopters;
}
