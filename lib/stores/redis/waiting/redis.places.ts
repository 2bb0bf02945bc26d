/** Most milliseconds that a waiter has to take the lock that it is offered. */
const LONGEST_OFFER = 1000;

/** How the queues at the server know the waiters of this process; see lua/prelude.lua. */
export class RedisPlaces {
  private readonly places = new Map<string, string>();
  /** Places that name the inbox after it was refused: their owners leave them, and take others. */
  private readonly refused = new Map<string, string>();

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

  forget(owner: string): void {
    this.refused.delete(owner);
    this.places.delete(owner);
  }
}
