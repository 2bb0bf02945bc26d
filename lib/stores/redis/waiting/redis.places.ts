/** Most milliseconds that a waiter has to take the lock that it is offered. */
const LONGEST_OFFER = 1000;
/** Owners of which we know that they are done with, so that an offer to one is a mistake. */
const MOST_DONE = 1000;

/** How the queues at the server know the waiters of this process; see lua/prelude.lua. */
export class RedisPlaces {
  private readonly places = new Map<string, string>();
  /** Places that name the inbox after it was refused: their owners leave them, and take others. */
  private readonly refused = new Map<string, string>();
  /** Owners that have waited and hold their key now. */
  private readonly holders = new Set<string>();
  /** Owners that have waited and want nothing any more: a request of theirs that arrives late may have put them into a queue once more. */
  private readonly done = new Set<string>();

  /** The place is the same whenever the owner asks, but that it names the inbox once there is one. */
  placeOf(owner: string, inbox: string, ttl: number, holding: readonly string[]): string {
    const known = this.places.get(owner) ?? [owner, inbox, Math.min(ttl, LONGEST_OFFER), ...holding].join('\n');
    const place = inbox === '' ? known : known.replace('\n\n', `\n${inbox}\n`);
    this.places.set(owner, place);
    return place;
  }

  /** Empty: it has no place. */
  knownPlaceOf(owner: string): string {
    if (this.places.size === 0 && this.refused.size === 0) return '';
    return this.refused.get(owner) ?? this.places.get(owner) ?? '';
  }

  /** The place that it has to leave before it asks for another one. */
  refusedPlaceOf(owner: string): string | undefined {
    return this.refused.size > 0 ? this.refused.get(owner) : undefined;
  }

  hasLeft(owner: string): void {
    this.refused.delete(owner);
  }

  /** Nobody listens to the inbox any more: places that name it are passed over. */
  refuse(inbox: string): void {
    for (const [owner, place] of this.places) {
      if (!place.includes(`\n${inbox}\n`)) continue;
      this.refused.set(owner, place);
      this.places.delete(owner);
    }
  }

  /** Whether the owner has waited. There are hardly ever any who have, and the look would have each owner hashed. */
  isKnown(owner: string): boolean {
    return (this.places.size > 0 && this.places.has(owner)) || (this.done.size > 0 && this.done.has(owner));
  }

  /** One that has waited has the key. In a quorum it may have given it back here before. */
  granted(owner: string): void {
    this.done.delete(owner);
    this.holders.add(owner);
  }

  /** The owner gives the key back. */
  released(owner: string): void {
    if (this.holders.size > 0 && this.holders.delete(owner)) this.finish(owner);
  }

  forget(owner: string): void {
    this.refused.delete(owner);
    if (this.places.delete(owner) && !this.holders.has(owner)) this.finish(owner);
  }

  /** Whether the owner has waited, and wants nothing any more. */
  isDone(owner: string): boolean {
    return this.done.has(owner);
  }

  private finish(owner: string): void {
    this.done.add(owner);
    if (this.done.size <= MOST_DONE) return;
    const [oldest = ''] = this.done;
    this.done.delete(oldest);
  }
}
