import { LockAbortedError, LockTimeoutError, StoreError, type Locks } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { endOf, loadScripts, shaOf, useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';
const REQUEST_TIMEOUT = 2_000;
const setting = useRedis();
const onlyTheFenceIsLeft = () => eventually(async () => (await setting.keys()).join() === `{${KEY}}:fence`);

beforeEach(() => loadScripts(setting.redis));

describe.each(['silence', 'reset'] as const)('a request that is applied, while its reply is lost in a %s', (then) => {
  async function opened() {
    const proxy = await setting.proxy();
    const locks = setting.own(proxy.connection, { requestTimeout: REQUEST_TIMEOUT });
    await locks.using('warm-up', () => undefined, woken);
    await setting.redis.flushall();
    const lost = jest.fn();
    locks.on('lost', lost);
    return { proxy, locks, lost, stranger: setting.own() };
  }

  it('is an acquire: it is asked for again, and granted to no other caller (G6)', async () => {
    const { proxy, locks, stranger } = await opened();
    const loss = proxy.dropReplyTo(shaOf('acquire'), { then });
    const lease = await locks.acquire(KEY, woken);
    expect(loss.lost).toBe(1);
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    expect(await stranger.tryAcquire(KEY)).toBeNull();
    lease.assertHeld();
    expect(await lease.release()).toBe(true);

    const next = await stranger.acquire(KEY, woken);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken!);
    await locks.close();
    expect(await next.release()).toBe(true);
    await onlyTheFenceIsLeft();
  });

  it('is a renewal: the lease is not taken for lost, and renewed (G4, G6)', async () => {
    const { proxy, locks, lost } = await opened();
    const unknown = jest.fn();
    locks.on('unknown', unknown);
    const lease = await locks.acquire(KEY, { keyTimeout: 12_000 });
    const loss = proxy.dropReplyTo(shaOf('renew'), { then });
    await eventually(() => loss.lost === 1 && unknown.mock.calls.length > 0);
    const end = endOf(lease);
    await eventually(() => endOf(lease) > end + 100);
    lease.assertHeld();
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    expect(await lease.release()).toBe(true);
    expect(lost).not.toHaveBeenCalled();
  });

  it('is a release: the result comes through, and the repeated release takes nothing from the next holder (G5, G6, G9, G10)', async () => {
    const { proxy, locks, lost, stranger } = await opened();
    const loss = proxy.dropReplyTo(shaOf('release'), { then });
    let next: ReturnType<Locks['acquire']> | undefined;
    const work = async (): Promise<string> => {
      next = stranger.acquire(KEY, woken);
      return 'result';
    };
    expect(await locks.using(KEY, work, woken)).toBe('result');
    const lease = await next!;
    expect(loss.lost).toBe(1);
    await locks.using('later', () => undefined, woken);
    await locks.close();
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    lease.assertHeld();
    expect(await lease.release()).toBe(true);
    expect(lost).not.toHaveBeenCalled();
  });
});

describe('a request that is answered late', () => {
  /** Locks with an open connection, of a server that answers when it is resumed. */
  async function opened(requestTimeout?: number) {
    const locks = setting.own(undefined, { requestTimeout });
    await locks.using('warm-up', () => undefined, woken);
    await setting.redis.flushall();
    const asks = jest.spyOn(locks.store.mutex, 'acquire');
    setting.finally(() => setting.server.resume());
    return { locks, asked: () => eventually(() => asks.mock.calls.length > 0) };
  }

  it('of an acquire that is given up by its signal: it rejects before the answer, and a release follows (G6, G7, G9)', async () => {
    const { locks, asked } = await opened();
    await setting.server.pause();
    const caller = new AbortController();
    const reason = new Error('the client hung up');
    const call = rejection(locks.acquire(KEY, { ...woken, signal: caller.signal }));
    await asked();
    caller.abort(reason);
    const error = await call;
    expect(error).toBeInstanceOf(LockAbortedError);
    expect(error).toMatchObject({ reason: 'signal', cause: reason });
    await setting.server.resume();
    await onlyTheFenceIsLeft();
  });

  it('of an acquire that is given up in a queue: it leaves the queue (G7)', async () => {
    const { locks, asked } = await opened();
    const holder = await setting.own().acquire(KEY, woken);
    // Once its inbox is open, the first request joins the queue.
    expect(await rejection(locks.acquire(KEY, { ...woken, fair: true, waitTimeout: 300 }))).toBeInstanceOf(LockTimeoutError);
    await setting.redis.config('RESETSTAT');
    jest.mocked(locks.store.mutex.acquire).mockClear();
    await setting.server.pause();
    const caller = new AbortController();
    const call = rejection(locks.acquire(KEY, { ...woken, fair: true, signal: caller.signal }));
    await asked();
    caller.abort();
    expect(await call).toBeInstanceOf(LockAbortedError);
    await setting.server.resume();
    await eventually(async () => (await setting.redis.info('commandstats')).includes('cmdstat_zadd'));
    await eventually(async () => !(await setting.redis.exists(`{${KEY}}:queue`)));
    expect(await setting.redis.get(KEY)).toBe(holder.owner);
  });

  it('by a server that does not know its script: the script is not sent any more, and no orphan stays (G6)', async () => {
    const { locks } = await opened(REQUEST_TIMEOUT);
    // The release that follows finds its script, so it would not come behind a second request of the acquire. So does the question whether Redis answers again.
    await setting.redis.script('FLUSH');
    await loadScripts(setting.redis, ['release', 'check']);
    await setting.redis.config('RESETSTAT');
    await setting.server.pause();
    expect(await rejection(locks.acquire(KEY, { ...woken, waitTimeout: 0 }))).toBeInstanceOf(StoreError);
    await setting.server.resume();
    const count = async (command: string): Promise<number> =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await setting.redis.info('commandstats'))?.[1] ?? 0);
    await eventually(async () => (await count('evalsha')) > 1);
    await locks.close();
    expect(await setting.keys()).toEqual([]);
    expect(await count('eval')).toBe(0);
  });
});
