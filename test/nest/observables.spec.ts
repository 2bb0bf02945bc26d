import {
  concat,
  defer,
  EMPTY,
  finalize,
  firstValueFrom,
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
import { currentLease, LockConfigError, LockTimeoutError, type DistributedLockOptions } from 'nestjs-distributed-lock';
import { eventually } from '../support/eventually.js';
import { bootKind, EXCLUSIVE, KINDS, type Kind } from './kinds.js';

const KEY = 'feed-locks';
const LONG = 60_000;

/** An app with one method that returns what the test's source makes, locked by these options under {@link KEY}. */
async function bootFeed(kind: Kind, source: () => unknown = () => EMPTY, options: DistributedLockOptions = {}) {
  class Feed {
    calls = 0;

    @kind.lock({ value: 'feed', keyTimeout: LONG, retryInterval: 2, ...options })
    read(): Observable<unknown> {
      this.calls++;
      return source() as Observable<unknown>;
    }
  }
  const booted = await bootKind(kind, { providers: [Feed] });
  const feed = booted.get(Feed);
  return {
    ...booted,
    feed,
    read: () => feed.read(),
    taken: () => booted.isTaken(KEY),
    occupy: (waitTimeout?: number) => booted.occupy(KEY, waitTimeout),
  };
}

/** What a subscriber is told. */
function listenTo(stream: Observable<unknown>) {
  const told: unknown[] = [];
  const subscription = stream.subscribe({
    next: (value) => told.push(value),
    error: (error: Error) => told.push(error),
    complete: () => told.push('complete'),
  });
  return Object.assign(subscription, { told });
}

describe.each(KINDS)('a method with $name that returns an Observable', (kind) => {
  it('is neither called nor locked until it is subscribed to', async () => {
    const { feed, read, acquired } = await bootFeed(kind, () => of(1));
    const stream = read();
    expect([feed.calls, acquired]).toEqual([0, []]);
    expect(await lastValueFrom(stream)).toBe(1);
    expect([feed.calls, acquired]).toEqual([1, [KEY]]);
  });

  it.each<[string, (source: Subject<unknown>) => void, unknown[]]>([
    ['completes', (source) => source.complete(), ['complete']],
    ['fails', (source) => source.error('broken'), ['broken']],
  ])('is locked until it %s', async (_what, end, last) => {
    const source = new Subject<unknown>();
    const { read, taken } = await bootFeed(kind, () => source);
    const { told } = listenTo(read());
    await eventually(() => source.observed);
    source.next(1);
    source.next(undefined);
    expect(await taken()).toBe(true);
    end(source);
    await eventually(() => expect(told).toEqual([1, undefined, ...last]));
    expect(await taken()).toBe(false);
  });

  it('is locked until its subscriber leaves', async () => {
    const source = new Subject<unknown>();
    const { read, taken } = await bootFeed(kind, () => source);
    const subscription = listenTo(read());
    await eventually(() => source.observed);
    expect(await taken()).toBe(true);
    subscription.unsubscribe();
    expect(source.observed).toBe(false);
    await eventually(async () => !(await taken()));
    expect(subscription.told).toEqual([]);
  });

  it('ends with its lock when its subscriber leaves in the midst of the first values', async () => {
    let ticks = 0;
    let ended = false;
    const source = concat(
      of('first'),
      interval(1).pipe(
        take(500),
        tap(() => ticks++),
      ),
    ).pipe(finalize(() => (ended = true)));
    const { read, taken } = await bootFeed(kind, () => source);
    expect(await firstValueFrom(read())).toBe('first');
    await eventually(async () => !(await taken()));
    expect([ended, ticks]).toEqual([true, 0]);
  });

  it('does not make more values than its subscriber takes', async () => {
    let made = 0;
    const { read } = await bootFeed(kind, () => range(0, 10_000).pipe(tap(() => made++)));
    expect(await lastValueFrom(read().pipe(take(2), toArray()))).toEqual([0, 1]);
    expect(made).toBe(2);
  });

  it.each([{ fair: false }, { fair: true }])('leaves no lock behind when its subscriber leaves while it waits: %p', async (options) => {
    const { feed, read, occupy, waiting, acquired } = await bootFeed(kind, undefined, { retryCount: 0, ...options });
    const lease = await occupy();
    const waiter = listenTo(read());
    await eventually(() => expect(waiting).toEqual([KEY]));
    waiter.unsubscribe();
    await lease.release();
    const next = await eventually(() => occupy(0));
    // Not by whom nobody waits for.
    expect(acquired).toEqual([KEY, KEY]);
    listenTo(read());
    await eventually(() => expect(waiting).toEqual([KEY, KEY]));
    expect(await next.release()).toBe(true);
    expect([feed.calls, waiter.told]).toEqual([0, []]);
  });

  it('leaves no lock behind when its subscriber leaves while it is being granted', async () => {
    const { feed, read, taken } = await bootFeed(kind);
    listenTo(read()).unsubscribe();
    await eventually(async () => !(await taken()));
    expect(feed.calls).toBe(0);
  });

  it('runs its own code inside the call chain, and its subscriber’s outside', async () => {
    const inside: unknown[] = [];
    const outside: unknown[] = [];
    const look = (where: unknown[]) => () => void where.push(currentLease()?.key);
    const source = () => (look(inside)(), interval(1).pipe(take(2), tap({ next: look(inside), complete: look(inside) })));
    const { read } = await bootFeed(kind, () => (inside.length === 0 ? source() : throwError(() => 'broken')));
    await lastValueFrom(read().pipe(tap({ next: look(outside), complete: look(outside) })));
    await new Promise<void>((resolve) => read().subscribe({ error: () => (look(outside)(), resolve()) }));
    expect(inside).toEqual([KEY, KEY, KEY, KEY]);
    expect(outside).toEqual([undefined, undefined, undefined, undefined]);
  });

  it('leaves its subscriber in the call chain that it subscribed in', async () => {
    const { read, locks } = await bootFeed(kind, () => of(1));
    const seen = await locks.using('outer', () => lastValueFrom(read().pipe(map(() => currentLease()?.key))));
    expect(seen).toBe('outer');
  });

  it('fails with what the method threw', async () => {
    const { read, taken } = await bootFeed(kind, () => {
      throw new Error('no feed');
    });
    await expect(lastValueFrom(read())).rejects.toThrow('no feed');
    expect(await taken()).toBe(false);
  });

  it('fails where the method returned something else', async () => {
    const { read, taken } = await bootFeed(kind, () => Promise.resolve(1));
    await expect(lastValueFrom(read())).rejects.toBeInstanceOf(LockConfigError);
    await expect(lastValueFrom(read())).rejects.toThrow(/Feed\.read: the method did not return an Observable/);
    expect(await taken()).toBe(false);
  });

  it('fails with LockLostError at its end where its lease was lost, with the last value', async () => {
    const { steal, read } = await bootFeed(kind, () => concat(of(1, 2), defer(loseIt)));
    const loseIt = async () => {
      await steal(currentLease());
      return 3;
    };
    const { told } = listenTo(read());
    await eventually(() => expect(told).toHaveLength(4));
    expect(told).toEqual([1, 2, 3, expect.objectContaining({ name: 'LockLostError', result: 3 })]);
  });

  it('says with returns what its type does not tell', async () => {
    class Feed {
      @kind.lock({ returns: 'observable' })
      untyped() {
        return of(currentLease()?.key);
      }
      @kind.lock({ returns: 'observable' })
      union(): Observable<unknown> | Promise<unknown> {
        return of(currentLease()?.key);
      }
    }
    const feed = (await bootKind(kind, { providers: [Feed] })).get(Feed);
    expect(await lastValueFrom(feed.untyped())).toBe('Feed.untyped-locks');
    expect(await lastValueFrom(feed.union() as Observable<unknown>)).toBe('Feed.union-locks');
  });
});

describe.each(EXCLUSIVE)('a method with $name that returns an Observable', (kind) => {
  it('waits for its other subscriptions, each of which calls the method', async () => {
    const sources = [new Subject<unknown>(), new Subject<unknown>()];
    const { feed, read } = await bootFeed(kind, () => sources[feed.calls - 1], { retryCount: 0 });
    const stream = read();
    const [first, second] = [listenTo(stream), listenTo(stream)];
    await eventually(() => sources[0]?.observed === true);
    sources[0]?.next('a');
    expect(sources[1]?.observed).toBe(false);
    sources[0]?.complete();
    await eventually(() => sources[1]?.observed === true);
    sources[1]?.next('b');
    expect([first.told, second.told]).toEqual([['a', 'complete'], ['b']]);
    second.unsubscribe();
  });

  it('is a stranger to its subscriber, who cannot enter it again', async () => {
    const { read } = await bootFeed(kind, () => concat(of(1), new Subject()), { waitTimeout: 0 });
    const told: unknown[] = [];
    const subscription = read().subscribe(() => read().subscribe({ error: (error) => told.push(error) }));
    await eventually(() => expect(told).toEqual([expect.any(LockTimeoutError)]));
    subscription.unsubscribe();
  });
});

describe.each(KINDS)('an Observable by $name whose key is taken', (kind) => {
  it.each<[string, DistributedLockOptions, unknown[]]>([
    ['fails by default', {}, [expect.any(LockTimeoutError)]],
    ["completes with onTimeout: 'skip'", { onTimeout: 'skip' }, ['complete']],
    ['emits what the function returns', { onTimeout: () => 'instead' }, ['instead', 'complete']],
    ['emits what the function resolves to', { onTimeout: async () => null }, [null, 'complete']],
    ['completes where the function returns nothing', { onTimeout: () => undefined }, ['complete']],
    ['goes on as the Observable that the function returns', { onTimeout: () => of(1, 2) }, [1, 2, 'complete']],
    ['fails as the Observable that the function returns', { onTimeout: () => throwError(() => 'busy') }, ['busy']],
  ])('%s', async (_what, options, expected) => {
    const { feed, read, occupy } = await bootFeed(kind, () => of('ran'), { waitTimeout: 0, ...options });
    await occupy();
    const { told } = listenTo(read());
    await eventually(() => expect(told).toEqual(expected));
    expect(feed.calls).toBe(0);
  });
});
