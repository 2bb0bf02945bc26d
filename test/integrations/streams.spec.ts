import { Controller, Get, Injectable } from '@nestjs/common';
import { currentLease, DistributedLock, LockConfigError, LockTimeoutError } from 'nestjs-distributed-lock';
import { defer, interval, lastValueFrom, Observable, of, share, Subject, take, tap, throwError, toArray } from 'rxjs';
import { boot } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { FeedService } from './feed.js';
import { way } from './place.js';

const LONG = { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 2 };
const KEY = 'feed-locks';
const key = () => currentLease()?.key ?? 'none';

/** An app with one locked Observable, under {@link KEY}. */
async function bootFeed(source: () => Observable<unknown>, options = {}) {
  @Injectable()
  class Feed {
    calls = 0;
    @DistributedLock({ value: 'feed', ...LONG, ...options })
    read(): Observable<unknown> {
      this.calls++;
      return source();
    }
  }
  const booted = await boot({ providers: [Feed] });
  return { ...booted, feed: booted.get(Feed), isHeld: () => booted.isTaken(KEY) };
}

way('Streams', 'a cold Observable', () => {
  it('is locked anew for each subscription, inside the source and not in what its subscriber does', async () => {
    const { feed, acquired, isHeld } = await bootFeed(() => defer(() => of(key(), key())));
    const stream = feed.read();
    expect([feed.calls, acquired]).toEqual([0, []]);
    const outside: string[] = [];
    const read = () =>
      lastValueFrom(
        stream.pipe(
          tap(() => outside.push(key())),
          toArray(),
        ),
      );
    expect(await Promise.all([read(), read()])).toEqual([
      [KEY, KEY],
      [KEY, KEY],
    ]);
    expect(outside).toEqual(Array(4).fill('none'));
    expect([feed.calls, acquired, await isHeld()]).toEqual([2, [KEY, KEY], false]);
  });

  it('is free again when it fails, and its error comes through', async () => {
    const { feed, acquired, isHeld } = await bootFeed(() => throwError(() => new Error(`broken under ${key()}`)));
    await expect(lastValueFrom(feed.read())).rejects.toThrow(`broken under ${KEY}`);
    expect([acquired, await isHeld()]).toEqual([[KEY], false]);
  });

  it('is never called for a subscriber that leaves before the lock is there', async () => {
    const { feed, locks, isHeld } = await bootFeed(() => of(1));
    const lease = await locks.acquire(KEY, { keyTimeout: 60_000 });
    const subscription = feed.read().subscribe();
    await expect(locks.acquire(KEY, { waitTimeout: 30 })).rejects.toBeInstanceOf(LockTimeoutError);
    subscription.unsubscribe();
    await lease.release();
    expect(await locks.using(KEY, async () => 'mine', { waitTimeout: 0, keyTimeout: 60_000 })).toBe('mine');
    expect([feed.calls, await isHeld()]).toEqual([0, false]);
  });
});

way('Streams', 'a hot Observable', () => {
  it('is locked from the subscription to its end: what it told before and after is not heard', async () => {
    const source = new Subject<string>();
    const { feed, isHeld } = await bootFeed(() => source);
    const told: unknown[] = [];
    source.next('before');
    const subscription = feed.read().subscribe((value) => told.push(value));
    source.next('while it waits');
    await eventually(() => source.observed);
    source.next('during');
    expect(await isHeld()).toBe(true);
    subscription.unsubscribe();
    source.next('after');
    await eventually(async () => !(await isHeld()));
    expect(told).toEqual(['during']);
  });

  it('makes a second subscriber wait until the first has left', async () => {
    const source = new Subject<string>();
    const { feed, locks } = await bootFeed(() => source);
    const told: string[] = [];
    const first = feed.read().subscribe((value) => told.push(`first ${String(value)}`));
    await eventually(() => source.observed);
    const second = feed.read().subscribe((value) => told.push(`second ${String(value)}`));
    await expect(locks.acquire(KEY, { waitTimeout: 30 })).rejects.toBeInstanceOf(LockTimeoutError);
    source.next('a');
    expect(feed.calls).toBe(1);
    first.unsubscribe();
    await eventually(() => feed.calls === 2 && source.observed);
    source.next('b');
    expect(told).toEqual(['first a', 'second b']);
    second.unsubscribe();
  });

  it('has one lock for all its subscribers where it is shared outside of the method', async () => {
    const source = new Subject<number>();
    const { feed, acquired, isHeld } = await bootFeed(() => source);
    const shared = feed.read().pipe(share());
    const told: unknown[] = [];
    const subscriptions = [1, 2].map((who) => shared.subscribe((value) => told.push([who, value])));
    await eventually(() => source.observed);
    source.next(7);
    expect([told, feed.calls, acquired]).toEqual([
      [
        [1, 7],
        [2, 7],
      ],
      1,
      [KEY],
    ]);
    subscriptions[0]?.unsubscribe();
    expect(await isHeld()).toBe(true);
    subscriptions[1]?.unsubscribe();
    await eventually(async () => !(await isHeld()));
  });
});

way('Streams', 'an async generator', () => {
  @Injectable()
  class Table {
    log: string[] = [];
    @DistributedLock({ value: 'feed', ...LONG })
    async *rows(): AsyncGenerator<number> {
      this.log.push(`begin ${key()}`);
      try {
        for (let row = 1; row <= 3; row++) yield row;
      } finally {
        this.log.push(`end ${key()}`);
      }
    }
  }
  const once = [`begin ${KEY}`, `end ${KEY}`];

  it('is locked until it ends, and its reader is not inside the call chain', async () => {
    const { get, acquired, isTaken } = await boot({ providers: [Table] });
    const seen: unknown[] = [];
    for await (const row of get(Table).rows()) seen.push(row, key(), await isTaken(KEY));
    expect(seen).toEqual([1, 'none', true, 2, 'none', true, 3, 'none', true]);
    expect([get(Table).log, acquired, await isTaken(KEY)]).toEqual([once, [KEY], false]);
  });

  it('is free again when its reader breaks off, or throws', async () => {
    const { get, acquired, isTaken } = await boot({ providers: [Table] });
    for await (const row of get(Table).rows()) if (row === 2) break;
    expect(await isTaken(KEY)).toBe(false);
    const reading = async () => {
      for await (const row of get(Table).rows()) throw new Error(`cannot read ${row}`);
    };
    await expect(reading()).rejects.toThrow('cannot read 1');
    expect([get(Table).log, acquired, await isTaken(KEY)]).toEqual([[...once, ...once], [KEY, KEY], false]);
  });

  it('takes no lock where nobody reads it', async () => {
    const { get, acquired } = await boot({ providers: [Table] });
    get(Table).rows();
    await get(Table).rows().return(undefined);
    expect([get(Table).log, acquired]).toEqual([[], []]);
  });

  it('keeps a second reader waiting', async () => {
    const { get, acquired } = await boot({ providers: [Table] });
    const read = async () => {
      for await (const _ of get(Table).rows()) await new Promise(setImmediate);
    };
    await Promise.all([read(), read()]);
    expect([get(Table).log, acquired]).toEqual([
      [...once, ...once],
      [KEY, KEY],
    ]);
  });
});

way('Streams', 'an Observable from a method that counts as one with a promise: a clear error', () => {
  it('names what to write, and the key is free again', async () => {
    @Controller()
    class Untyped {
      @Get()
      @DistributedLock({ value: 'feed' })
      read() {
        return interval(1).pipe(take(1));
      }
    }
    const { get, acquired, isTaken } = await boot({ controllers: [Untyped] });
    const result = get(Untyped).read() as unknown as Promise<unknown>;
    await expect(result).rejects.toThrow(/Untyped\.read: the method returned an Observable: say so with returns: 'observable'/);
    await expect(get(Untyped).read()).rejects.toBeInstanceOf(LockConfigError);
    expect([acquired, await isTaken(KEY)]).toEqual([[KEY, KEY], false]);
  });
});

describe('the examples of docs/streams.md', () => {
  it('do what their comments say', async () => {
    const { get, acquired } = await boot({ providers: [FeedService] });
    expect(await lastValueFrom(get(FeedService).prices().pipe(toArray()))).toEqual([1, 2, 3]);
    expect(await lastValueFrom(get(FeedService).stock().pipe(toArray()))).toEqual(['apple', 'pear']);
    expect(await get(FeedService).exportAll()).toBe(3);
    expect(get(FeedService).current).toEqual([undefined, undefined, undefined]);
    expect(acquired).toEqual(['prices-locks', 'stock-locks', 'rows-locks']);
  });
});
