/** What a {@link LinkedList} notes on an entry, which is in one list at most. */
export interface Linked<T extends Linked<T>> {
  list: LinkedList<T> | undefined;
  previous: T | undefined;
  next: T | undefined;
}

/** Not in a list yet. */
export abstract class LinkedEntry<T extends Linked<T>> implements Linked<T> {
  /** @internal */
  list: LinkedList<T> | undefined;
  /** @internal */
  previous: T | undefined;
  /** @internal */
  next: T | undefined;
}

/**
 * Entries that come and go all the time, in the order in which they came. A `Set` copies its table for every few hundred of them: the old tables
 * outlive what they list, which the garbage collector then carries along, and its first one is found ever later where the first ones leave.
 */
export class LinkedList<T extends Linked<T>> implements Iterable<T> {
  first: T | undefined;
  size = 0;
  private last: T | undefined;

  add(entry: T): void {
    entry.list = this;
    entry.previous = this.last;
    if (this.last) this.last.next = entry;
    else this.first = entry;
    this.last = entry;
    this.size++;
  }

  has(entry: T): boolean {
    return entry.list === this;
  }

  /** Whether it was there. */
  delete(entry: T): boolean {
    if (entry.list !== this) return false;
    const { previous, next } = entry;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.last = previous;
    entry.list = entry.previous = entry.next = undefined;
    this.size--;
    return true;
  }

  /** As they are now: while it is gone through, some may leave. */
  [Symbol.iterator](): Iterator<T> {
    const all: T[] = [];
    for (let entry = this.first; entry; entry = entry.next) all.push(entry);
    return all.values();
  }
}
