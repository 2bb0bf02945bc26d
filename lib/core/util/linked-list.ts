/** An entry of a {@link LinkedList}. It is in one list at most. */
export abstract class LinkedEntry<T extends LinkedEntry<T>> {
  list: LinkedList<T> | undefined;
  previous: T | undefined;
  next: T | undefined;
}

/**
 * Entries that come and go all the time, in the order of arrival. A `Set` copies its table for every few hundred of them, and the old tables keep
 * the entries in memory for longer. Finding its first entry also takes longer, the more entries have left before it.
 */
export class LinkedList<T extends LinkedEntry<T>> implements Iterable<T> {
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

  /** Returns whether it was there. */
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

  /** The current entries: some may leave during the loop. */
  [Symbol.iterator](): Iterator<T> {
    const all: T[] = [];
    for (let entry = this.first; entry; entry = entry.next) all.push(entry);
    return all.values();
  }
}
