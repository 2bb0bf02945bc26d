// What a Redis server should hold of mutexes, and answer: written from the protocol's description, not from the scripts.

import { QueueModel, type Caller } from './queue.model.js';

export interface AcquireStep {
  readonly key: string;
  readonly caller: Caller;
  readonly ttl: number;
  readonly tokens: number;
  readonly queue: boolean;
  readonly yields: string;
}

interface Holding {
  readonly owner: string;
  /** Released, and taken until its minHold is over. */
  readonly isKept: boolean;
  readonly ttl: number;
}

export type ExpectedReply = 'granted' | { holder: string; ahead: number; ttl: number };

export class MutexLock {
  holding: Holding | undefined;
  queue: Caller[] = [];
}

export class MutexModel extends QueueModel<MutexLock> {
  acquire({ key, caller, ttl, queue, yields }: AcquireStep): ExpectedReply {
    const lock = this.at(key);
    if (lock.holding?.owner === caller.owner && !lock.holding.isKept) {
      lock.holding = { ...lock.holding, ttl: Math.max(ttl, lock.holding.ttl) };
      return 'granted';
    }
    const isFree = !lock.holding || (lock.holding.owner === yields && !lock.holding.isKept);
    if (isFree && !this.offer(key, caller)) {
      lock.holding = { owner: caller.owner, isKept: false, ttl };
      return 'granted';
    }
    const { owner, isKept, ttl: left } = lock.holding!;
    const holder = isKept ? `kept:${owner}` : owner;
    if (!queue) return { holder, ahead: 0, ttl: left };
    // One that has its inbox by now stays where it was without.
    const index = lock.queue.findIndex((waiter) => waiter.owner === caller.owner);
    if (index < 0) lock.queue.push(caller);
    else lock.queue[index] = caller;
    return { holder, ahead: lock.queue.indexOf(caller), ttl: left };
  }

  release(key: string, caller: Caller, keepFor: number): 0 | 1 {
    const lock = this.at(key);
    const { holding } = lock;
    if (holding?.owner !== caller.owner) return 0;
    if (holding.isKept) return 1;
    if (keepFor > 0) {
      lock.holding = { owner: caller.owner, isKept: true, ttl: keepFor };
      this.sayNext(key, '', keepFor);
    } else if (!this.offer(key)) lock.holding = undefined;
    return 1;
  }

  leave(key: string, caller: Caller): 0 | 1 {
    const lock = this.at(key);
    lock.queue = lock.queue.filter(({ owner }) => owner !== caller.owner);
    return this.release(key, caller, 0);
  }

  renew(key: string, caller: Caller, ttl: number): 0 | 1 {
    const lock = this.at(key);
    if (lock.holding?.owner !== caller.owner || lock.holding.isKept) return 0;
    lock.holding = { ...lock.holding, ttl: Math.max(ttl, lock.holding.ttl) };
    return 1;
  }

  extend(key: string, caller: Caller, ttl: number): 'lost' | 'wanted' | 'extended' {
    if (this.renew(key, caller, ttl) === 0) return 'lost';
    return this.at(key).queue.length > 0 ? 'wanted' : 'extended';
  }

  check(key: string, caller: Caller): string {
    const { holding, queue } = this.at(key);
    if (holding?.owner === caller.owner && !holding.isKept) return 'held';
    if (queue.includes(caller)) return 'queued';
    return holding ? 'taken' : 'free';
  }

  /** The lease runs out, or somebody deletes it: nobody is told. */
  vanish(key: string): void {
    this.at(key).holding = undefined;
  }

  /** The classic `SET key owner NX PX ttl`. */
  setIfFree(key: string, owner: string, ttl: number): boolean {
    const lock = this.at(key);
    if (lock.holding) return false;
    lock.holding = { owner, isKept: false, ttl };
    return true;
  }

  valueAt(key: string): string | null {
    const { holding } = this.at(key);
    return holding ? `${holding.isKept ? 'kept:' : ''}${holding.owner}` : null;
  }

  holdersOf(key: string): string[] {
    return [this.valueAt(key) ?? []].flat();
  }

  /** The first waiter that is not known to be gone has the lock now, unless the asker comes before it. Those ahead of it are forgotten. */
  private offer(key: string, asker?: Caller): boolean {
    const lock = this.at(key);
    for (let head = lock.queue.shift(); head; head = lock.queue.shift()) {
      const { owner, inbox } = head;
      if (owner === asker?.owner) return false;
      if (this.isGone(head)) continue;
      lock.holding = { owner, isKept: false, ttl: this.offerTtl };
      this.sayOffer(key, head);
      this.sayNext(key, inbox, this.offerTtl);
      return true;
    }
    return false;
  }

  protected override queueOf(key: string): readonly Caller[] {
    return this.at(key).queue;
  }
}
