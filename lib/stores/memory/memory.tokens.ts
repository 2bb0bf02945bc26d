import { now } from '../../core/util/clock.js';

/** Milliseconds for which the token of a key's last write is remembered. */
const HOUR = 3_600_000;

/** The fencing tokens of all keys. They are microseconds of the wall clock, so that they grow across restarts of the process. */
export class MemoryTokens {
  private last = 0;
  /** The token of each key's last write. The one that expires first is the first. */
  private readonly writes = new Map<string, { readonly token: number; readonly endsAt: number }>();

  /** Reserves `count` new tokens, and returns the first. */
  next(count: number, floor = 0): number {
    const token = Math.max(this.last + 1, floor, Date.now() * 1000);
    this.last = token + count - 1;
    return token;
  }

  /** New ones for a write. A read gets the token of the last write. */
  ofReadWriteLock(key: string, isRead: boolean, count: number, floor = 0): number {
    const time = now();
    const known = isRead ? (this.writes.get(key)?.token ?? -1) : -1;
    const token = known >= floor ? known : this.next(count, floor);
    this.writes.delete(key);
    this.writes.set(key, { token: isRead ? token : token + count - 1, endsAt: time + HOUR });
    for (const [expired, { endsAt }] of this.writes) {
      if (endsAt > time) break;
      this.writes.delete(expired);
    }
    return token;
  }
}
