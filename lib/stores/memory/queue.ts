interface Place {
  readonly owner: string;
  /** Permits that it waits for. */
  readonly count: number;
  /** Milliseconds that an offer lasts. */
  readonly offer: number;
  /** The queue is sorted by it. */
  readonly order: number;
}

/** More than will ever join one queue. */
const ORDERS_PER_RANK = 2 ** 50;

/** The waiters of one key, by rank and then by arrival. Each verb is cheap for thousands of waiters. */
export class Queue {
  private readonly line: Place[] = [];
  private readonly places = new Map<string, Place>();
  private lastOrder = 0;

  get head(): Place | undefined {
    return this.line[0];
  }

  /** How many waiters come before this owner; `undefined`: it is not in the queue. */
  ahead(owner: string): number | undefined {
    const place = this.places.get(owner);
    return place && this.indexOf(place.order);
  }

  /** Returns false if the owner has a place already, which it keeps. */
  join(owner: string, count: number, rank: number, offer: number): boolean {
    if (this.places.has(owner)) return false;
    const place = { owner, count, offer, order: rank * ORDERS_PER_RANK + ++this.lastOrder };
    this.line.splice(this.indexOf(place.order), 0, place);
    this.places.set(owner, place);
    return true;
  }

  /** Returns whether the owner was in the queue. */
  leave(owner: string): boolean {
    const place = this.places.get(owner);
    if (!place) return false;
    this.line.splice(this.indexOf(place.order), 1);
    return this.places.delete(owner);
  }

  /** The index of the first place that does not come before this one. */
  private indexOf(order: number): number {
    let [from, to] = [0, this.line.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.line[middle] as Place).order < order) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
