import type { Share } from '../../core/store/lease-driver.js';

/** One who waits. */
export interface Place {
  readonly owner: string;
  readonly share: Share;
  /** Milliseconds that an offer lasts. */
  readonly offer: number;
  /** Which one it was to come. */
  readonly number: number;
}

/** Those who wait for one key: the lower rank first, and of one rank who came first. Thousands may wait, and each asks now and then. */
export class SharedQueue {
  private readonly line: Place[] = [];
  private readonly places = new Map<string, Place>();
  private lastNumber = 0;

  get size(): number {
    return this.line.length;
  }

  get head(): Place | undefined {
    return this.line[0];
  }

  has(owner: string): boolean {
    return this.places.has(owner);
  }

  /** How many go before this owner. */
  ahead(owner: string): number {
    const place = this.places.get(owner);
    return place ? this.indexOf(place.share.rank, place.number) : 0;
  }

  /** At the end of its rank, once. */
  join(owner: string, share: Share, offer: number): void {
    if (this.has(owner)) return;
    const place = { owner, share, offer, number: ++this.lastNumber };
    this.line.splice(this.indexOf(share.rank, place.number), 0, place);
    this.places.set(owner, place);
  }

  /** Whether it was there. */
  leave(owner: string): boolean {
    const place = this.places.get(owner);
    if (!place) return false;
    this.line.splice(this.indexOf(place.share.rank, place.number), 1);
    return this.places.delete(owner);
  }

  /** Where the first one stands that does not go before this one. */
  private indexOf(rank: number, number: number): number {
    let [from, to] = [0, this.line.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      const other = this.line[middle] as Place;
      const goesBefore = other.share.rank < rank || (other.share.rank === rank && other.number < number);
      if (goesBefore) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
