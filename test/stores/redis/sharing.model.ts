// What a Redis server should hold of locks that several hold, and answer: written from their description, not from the scripts.
import { QueueModel, type Caller } from './queue.model.js';

/** Of a lock that nobody counts: more than there are callers. */
export const WHOLE = 1_000_000_000;

export interface SharingRequest {
  readonly key: string;
  readonly caller: Caller;
  readonly ttl: number;
  readonly queue: boolean;
  readonly count: number;
  readonly permits: number;
  readonly rank: 0 | 1;
  readonly beside: string;
}

interface Holding {
  readonly count: number;
  readonly ttl: number;
}

interface Entry {
  readonly caller: Caller;
  readonly count: number;
  readonly rank: 0 | 1;
}

export type ExpectedReply = 'granted' | { ttl: number; ahead: number; holders: readonly string[] };

export class SharedLock {
  permits = WHOLE;
  readonly holders = new Map<string, Holding>();
  queue: Entry[] = [];

  taken(except = ''): number {
    return [...this.holders].reduce((sum, [owner, { count }]) => sum + (owner === except ? 0 : count), 0);
  }
}

export class SharingModel extends QueueModel<SharedLock> {
  acquire({ key, caller, ttl, queue, count, permits, rank, beside }: SharingRequest): ExpectedReply {
    const lock = this.at(key);
    const { owner } = caller;
    lock.permits = permits;
    const held = lock.holders.get(owner);
    const keepsOwn = lock.holders.has(beside) && lock.taken(beside) + count <= permits;
    const entry = lock.queue.findIndex((waiting) => waiting.caller.owner === owner);
    const wasQueued = entry >= 0;
    if (held) lock.holders.set(owner, { ...held, ttl: Math.max(ttl, held.ttl) });
    else if (keepsOwn) lock.holders.set(owner, { count, ttl });
    else if (!wasQueued) {
      const firstBehind = lock.queue.findIndex((entry) => entry.rank > rank);
      lock.queue.splice(firstBehind < 0 ? lock.queue.length : firstBehind, 0, { caller, count, rank });
    } else {
      // One that has its inbox by now stays where it was without.
      lock.queue[entry] = { ...lock.queue[entry]!, caller };
    }
    this.serve(key, caller, ttl);
    if (!lock.holders.has(owner) && !queue && !wasQueued) {
      this.forget(lock, caller);
      this.serve(key);
    }
    if (lock.holders.has(owner)) {
      this.forget(lock, caller);
      return 'granted';
    }
    const ends = [...lock.holders.values()].map((holding) => holding.ttl);
    const end = count === permits ? Math.max(...ends) : Math.min(...ends);
    const holders = [...lock.holders].filter(([, holding]) => holding.ttl === end).map(([name]) => name);
    const ahead = queue ? lock.queue.findIndex((entry) => entry.caller === caller) : 0;
    return holders.length > 0 ? { ttl: end, ahead, holders } : { ttl: -1, ahead, holders: [''] };
  }

  release(key: string, { owner }: Caller, keepFor: number): 0 | 1 {
    const lock = this.at(key);
    // Whoever waits for a key that has run out finds that by itself.
    if (lock.holders.size === 0) return 0;
    const held = lock.holders.get(owner);
    lock.holders.delete(owner);
    if (held && keepFor > 0) lock.holders.set(`kept:${owner}`, { count: held.count, ttl: keepFor });
    this.serve(key);
    if (held && keepFor > 0) this.sayNext(key, '', keepFor);
    return held || lock.holders.has(`kept:${owner}`) ? 1 : 0;
  }

  leave(key: string, caller: Caller): 0 | 1 {
    this.forget(this.at(key), caller);
    return this.release(key, caller, 0);
  }

  renew(key: string, { owner }: Caller, ttl: number): 0 | 1 {
    const { holders } = this.at(key);
    const held = holders.get(owner);
    if (held) holders.set(owner, { ...held, ttl: Math.max(ttl, held.ttl) });
    return held ? 1 : 0;
  }

  check(key: string, caller: Caller): string {
    const { holders, queue } = this.at(key);
    if (holders.has(caller.owner)) return 'held';
    if (queue.some((entry) => entry.caller === caller)) return 'queued';
    return holders.size > 0 ? 'taken' : 'free';
  }

  /** A lease runs out: nobody is told. */
  expire(key: string, holder: string): void {
    this.at(key).holders.delete(holder);
  }

  holdersOf(key: string): string[] {
    return [...this.at(key).holders.keys()];
  }

  /** The first waiters, as long as they fit, have it for a moment, but the one who asks for as long as it wants. Who is gone is passed over. */
  private serve(key: string, asker?: Caller, ttl = 0): void {
    const lock = this.at(key);
    let told: string | undefined;
    for (let head = lock.queue[0]; head; head = lock.queue[0]) {
      const { caller, count } = head;
      const fits = lock.taken() + count <= lock.permits;
      const isAsker = caller.owner === asker?.owner;
      const isGone = !isAsker && this.isGone(caller);
      // Where nothing is free it does not matter who is gone.
      if (!fits && (!isGone || lock.taken() >= lock.permits)) break;
      lock.queue.shift();
      if (isGone || lock.holders.has(caller.owner)) continue;
      lock.holders.set(caller.owner, { count, ttl: isAsker ? ttl : this.offerTtl });
      if (isAsker) continue;
      told = caller.inbox;
      this.sayOffer(key, caller);
    }
    if (told !== undefined) this.sayNext(key, told, this.offerTtl);
  }

  private forget(lock: SharedLock, caller: Caller): void {
    lock.queue = lock.queue.filter((entry) => entry.caller.owner !== caller.owner);
  }

  protected override queueOf(key: string): readonly Caller[] {
    return this.at(key).queue.map(({ caller }) => caller);
  }
}
