type Asked = Pick<Place, 'owner' | 'count' | 'offer'> & { readonly holding: readonly string[] | undefined };

interface Place {
  readonly owner: string;
  /** Permits that it waits for. */
  readonly count: number;
  /** Milliseconds that an offer lasts. */
  readonly offer: number;
  /** What its call chain holds. */
  readonly holding: readonly string[];
  /** When it came, in milliseconds since 1970. */
  readonly since: number;
  /** The queue is sorted by it. */
  readonly order: number;
}

/** More than will ever join one queue. */
const ORDERS_PER_RANK = 2 ** 50;

/** The waiters of one key, by rank and then by arrival. Each verb is cheap for thousands of waiters. */
export class Queue {
  private readonly line: Place[] = [];
  private readonly byOwner = new Map<string, Place>();
  private lastOrder = 0;

  /** The first one comes first. */
  get places(): readonly Place[] {
    return this.line;
  }

  get head(): Place | undefined {
    return this.line[0];
  }

  /** How many waiters come before this owner; `undefined`: it is not in the queue. */
  ahead(owner: string): number | undefined {
    const place = this.byOwner.get(owner);
    return place && this.indexOf(place.order);
  }

  /** Returns false if the owner has a place already, which it keeps. */
  join({ owner, count, offer, holding = [] }: Asked, rank: number): boolean {
    if (this.byOwner.has(owner)) return false;
    const place = { owner, count, offer, holding, since: Date.now(), order: rank * ORDERS_PER_RANK + ++this.lastOrder };
    this.line.splice(this.indexOf(place.order), 0, place);
    this.byOwner.set(owner, place);
    return true;
  }

  /** Returns whether the owner was in the queue. */
  leave(owner: string): boolean {
    const place = this.byOwner.get(owner);
    if (!place) return false;
    this.line.splice(this.indexOf(place.order), 1);
    return this.byOwner.delete(owner);
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
