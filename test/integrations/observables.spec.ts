import '../support/virtual-time.js';
import { Injectable } from '@nestjs/common';
import { currentLease, DistributedLock, LockTimeoutError, type DistributedLockOptions } from 'nestjs-distributed-lock';
import {
  concat,
  concatMap,
  defer,
  EMPTY,
  finalize,
  firstValueFrom,
  from,
  interval,
  lastValueFrom,
  map,
  Observable,
  of,
  range,
  Subject,
  take,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { boot } from '../nest/boot.js';
import { eventually } from '../support/eventually.js';
import { FeedService } from './feed.js';
import { way } from './ways.js';

const KEY = 'feed-locks';
const key = () => currentLease()?.key;

/** An app with one locked Observable, under {@link KEY}. */
async function bootFeed(source: () => unknown = () => EMPTY, options: DistributedLockOptions = {}) {
  @Injectable()
  class Feed {
    calls = 0;
    @DistributedLock({ value: 'feed', keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 2, ...options })
    read(): Observable<unknown> {
      this.calls++;
      return source() as Observable<unknown>;
    }
  }
  const booted = await boot({ providers: [Feed] });
  const feed = booted.get(Feed);
  return {
    ...booted,
    feed,
    read: () => feed.read(),
    isHeld: () => booted.isTaken(KEY),
    occupy: () => booted.locks.acquire(KEY, { keyTimeout: 60_000, waitTimeout: 0 }),
  };
}

/** What a subscriber receives. */
function listenTo(stream: Observable<unknown>) {
  const received: unknown[] = [];
  const subscription = stream.subscribe({
    next: (value) => received.push(value),
    error: (error: Error) => received.push(error),
    complete: () => received.push('complete'),
  });
  return Object.assign(subscription, { received });
}

way('Streams', 'a cold Observable', () => {
  it('is locked for each subscription, which calls the method', async () => {
    const { feed, read, acquired, isHeld } = await bootFeed(() => defer(() => of(key(), key())));
    const stream = read();
    expect([feed.calls, acquired]).toEqual([0, []]);
    const all = () => lastValueFrom(stream.pipe(toArray()));
    expect(await Promise.all([all(), all()])).toEqual([
      [KEY, KEY],
      [KEY, KEY],
    ]);
    expect([feed.calls, acquired, await isHeld()]).toEqual([2, [KEY, KEY], false]);
  });

  it('runs its own code inside the call chain, and its subscriber’s in that in which it subscribed', async () => {
    const inside: unknown[] = [];
    const outside: unknown[] = [];
    const look = (where: unknown[]) => () => void where.push(key());
    const later = of(1, 2).pipe(concatMap(async (value) => value));
    const source = () => (look(inside)(), later.pipe(tap({ next: look(inside), complete: look(inside) })));
    const { read, locks } = await bootFeed(() => (inside.length === 0 ? source() : throwError(() => 'broken')));
    await lastValueFrom(read().pipe(tap({ next: look(outside), complete: look(outside) })));
    await new Promise<void>((resolve) => read().subscribe({ error: () => (look(outside)(), resolve()) }));
    expect(inside).toEqual([KEY, KEY, KEY, KEY]);
    expect(outside).toEqual([undefined, undefined, undefined, undefined]);
    inside.splice(0);
    expect(await locks.using('outer', () => lastValueFrom(read().pipe(map(key))))).toBe('outer');
  });

  it.each<[string, () => unknown, string | RegExp]>([
    ['it fails with', () => throwError(() => new Error(`broken under ${key()}`)), `broken under ${KEY}`],
    [
      'the method threw',
      () => {
        throw new Error('no feed');
      },
      'no feed',
    ],
    [
      'it says where the method returned something else',
      () => Promise.resolve(1),
      /Feed\.read: the method has run, and did not return an Observable/,
    ],
  ])('fails with what %s, and is free again', async (_what, source, message) => {
    const { read, isHeld } = await bootFeed(source);
    await expect(lastValueFrom(read())).rejects.toThrow(message);
    expect(await isHeld()).toBe(false);
  });

  it('ends with its lock when its subscriber leaves in the midst of the first values', async () => {
    let ticks = 0;
    let ended = false;
    const later = interval(1).pipe(
      take(500),
      tap(() => ticks++),
    );
    const { read, isHeld } = await bootFeed(() => concat(of('first'), later).pipe(finalize(() => (ended = true))));
    expect(await firstValueFrom(read())).toBe('first');
    await eventually(async () => !(await isHeld()));
    expect([ended, ticks]).toEqual([true, 0]);
  });

  it('does not make more values than its subscriber takes', async () => {
    let made = 0;
    const { read } = await bootFeed(() => range(0, 10_000).pipe(tap(() => made++)));
    expect(await lastValueFrom(read().pipe(take(2), toArray()))).toEqual([0, 1]);
    expect(made).toBe(2);
  });

  it.each([{ fair: false }, { fair: true }])('leaves no lock behind when its subscriber leaves while it waits: %p', async (options) => {
    const { feed, read, occupy, waiting, acquired } = await bootFeed(undefined, options);
    const lease = await occupy();
    const waiter = listenTo(read());
    await eventually(() => expect(waiting).toEqual([KEY]));
    waiter.unsubscribe();
    await lease.release();
    const next = await eventually(() => occupy());
    expect(acquired).toEqual([KEY, KEY]);
    listenTo(read());
    await eventually(() => expect(waiting).toEqual([KEY, KEY]));
    expect(await next.release()).toBe(true);
    expect([feed.calls, waiter.received]).toEqual([0, []]);
  });

  it('leaves no lock behind when its subscriber leaves while it is being granted', async () => {
    const { feed, read, isHeld } = await bootFeed();
    listenTo(read()).unsubscribe();
    await eventually(async () => !(await isHeld()));
    expect(feed.calls).toBe(0);
  });

  it('fails with LockLostError at its end where its lease was lost, with the last value', async () => {
    const { store, read } = await bootFeed(() => concat(of(1, 2), defer(loseIt)));
    const loseIt = async () => {
      await store.mutex.release({ key: KEY, owner: currentLease()?.owner ?? '', keepFor: 0 });
      return 3;
    };
    const { received } = listenTo(read());
    await eventually(() => expect(received).toHaveLength(4));
    expect(received).toEqual([1, 2, 3, expect.objectContaining({ name: 'LockLostError', result: 3 })]);
  });

  it.each<[string, DistributedLockOptions, unknown[]]>([
    ['fails by default', {}, [expect.any(LockTimeoutError)]],
    ["completes with onTimeout: 'skip'", { onTimeout: 'skip' }, ['complete']],
    ['emits what the function returns', { onTimeout: () => 'instead' }, ['instead', 'complete']],
    ['goes on as the Observable that the function returns', { onTimeout: () => of(1, 2) }, [1, 2, 'complete']],
    ['fails as the Observable that the function returns', { onTimeout: () => throwError(() => 'busy') }, ['busy']],
  ])('whose key is taken %s', async (_what, options, expected) => {
    const { feed, read, occupy } = await bootFeed(() => of('ran'), { waitTimeout: 0, ...options });
    await occupy();
    const { received } = listenTo(read());
    await eventually(() => expect(received).toEqual(expected));
    expect(feed.calls).toBe(0);
  });

  it('may be of a method whose type does not say so, with the option returns', async () => {
    class Untyped {
      @DistributedLock({ returns: 'observable' })
      read(): Observable<unknown> | Promise<unknown> {
        return of(key());
      }
    }
    const { get } = await boot({ providers: [Untyped] });
    expect(await lastValueFrom(get(Untyped).read() as Observable<unknown>)).toBe('Untyped.read-locks');
  });
});

way('Streams', 'a hot Observable', () => {
  it.each<[string, (source: Subject<unknown>, subscriber: { unsubscribe(): void }) => void, unknown[]]>([
    ['it completes', (source) => source.complete(), ['complete']],
    ['it fails', (source) => source.error('broken'), ['broken']],
    ['its subscriber leaves', (_source, subscriber) => subscriber.unsubscribe(), []],
  ])('is locked from the subscription until %s: what it emits before and after is not seen', async (_what, end, last) => {
    const source = new Subject<unknown>();
    const { read, isHeld } = await bootFeed(() => source);
    source.next('before');
    const subscriber = listenTo(read());
    source.next('while it waits');
    await eventually(() => source.observed);
    source.next('during');
    source.next(undefined);
    expect(await isHeld()).toBe(true);
    end(source, subscriber);
    expect(source.observed).toBe(false);
    source.next('after');
    await eventually(async () => !(await isHeld()));
    expect(subscriber.received).toEqual(['during', undefined, ...last]);
  });

  it('makes a second subscriber wait until the first has left', async () => {
    const source = new Subject<string>();
    const { feed, read, waiting } = await bootFeed(() => source);
    const first = listenTo(read());
    await eventually(() => source.observed);
    const second = listenTo(read());
    await eventually(() => expect(waiting).toEqual([KEY]));
    source.next('a');
    expect(feed.calls).toBe(1);
    first.unsubscribe();
    await eventually(() => feed.calls === 2 && source.observed);
    source.next('b');
    expect([first.received, second.received]).toEqual([['a'], ['b']]);
    second.unsubscribe();
  });
});

it('the examples of docs/http.md do what their comments say', async () => {
  const { get, acquired } = await boot({ providers: [FeedService] });
  expect(await lastValueFrom(get(FeedService).prices().pipe(toArray()))).toEqual([1, 2, 3]);
  expect(await lastValueFrom(get(FeedService).stock().pipe(toArray()))).toEqual(['apple', 'pear']);
  expect(await lastValueFrom(from(get(FeedService).rows()).pipe(toArray()))).toEqual([1, 2, 3]);
  expect(acquired).toEqual(['prices-locks', 'stock-locks', 'rows-locks']);
});
