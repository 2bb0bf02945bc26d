// What docs/count-down-latch.md says, on a real server.
import { Locks, LockAbortedError, LockConfigError, StoreError } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { eventually } from '../support/eventually.js';
import { NightlyImport } from './count-down-latch.js';
import { useRedisOfEnv } from './stand-ins/redis-of-env.js';

const setting = useRedisOfEnv();
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Another process, as far as the locks are concerned. */
function openLocks(): Locks {
  const locks = new Locks(redisStore({ url: setting.url }), { logger: false });
  ends.push(() => locks.close());
  return locks;
}

describe('the example', () => {
  const loaded: string[] = [];
  const instance = () => new NightlyImport(openLocks(), async (part) => void loaded.push(part));
  beforeEach(() => loaded.splice(0));

  it('reports when all parts are in, wherever they were loaded', async () => {
    const [one, other] = [instance(), instance()];
    expect(await one.begin('monday', ['a', 'b', 'c'])).toBe(true);
    expect(await other.begin('monday', ['a', 'b', 'c'])).toBe(false);
    const report = one.report('monday').then((text) => `${text} with ${loaded.join()}`);
    await eventually(async () => (await setting.redis.hkeys('import:monday')).some((field) => field.startsWith('waiter:')));
    await Promise.all([one.importPart('monday', 'a'), other.importPart('monday', 'b')]);
    await other.importPart('monday', 'c');
    expect((await report).split(' with ')).toEqual(['complete', expect.stringMatching(/^(a,b|b,a),c$/)]);
    const left = await setting.redis.pttl('import:monday');
    expect(left).toBeGreaterThan(3_500_000);
    expect(await instance().report('monday')).toBe('complete');
    expect(await one.begin('monday', ['d'])).toBe(true);
  });

  it('says what is missing when the latch is lost, and lets the caller go by its signal', async () => {
    const night = instance();
    await night.begin('tuesday', ['a', 'b']);
    const caller = new AbortController();
    const calledOff = night.report('tuesday', caller.signal).catch((error: unknown) => error);
    const report = instance().report('tuesday');
    await eventually(async () => (await setting.redis.hlen('import:tuesday')) === 3 + 1 + 2);
    caller.abort();
    expect(await calledOff).toBeInstanceOf(LockAbortedError);
    await setting.redis.pexpire('import:tuesday', 1);
    const inboxes = (await setting.redis.pubsub('CHANNELS', 'nestjs-distributed-lock:inbox:*')) as string[];
    // As a reconnection does, so that nobody need wait for the next look.
    expect(inboxes.length).toBeGreaterThan(0);
    await setting.redis.client('KILL', 'TYPE', 'PUBSUB');
    expect(await report).toBe('given up: nothing came in for an hour');
  });
});

describe('the pitfalls', () => {
  it('who waits before the count is set does not wait at all', async () => {
    await openLocks().countDownLatch('early').await({ waitTimeout: 0 });
  });

  it('the default patience of a lock is short for a latch', async () => {
    const latch = openLocks().countDownLatch('short');
    await latch.trySetCount(1);
    const start = performance.now();
    await expect(latch.await()).rejects.toThrow('"short" was not counted down within');
    expect(performance.now() - start).toBeGreaterThanOrEqual(1_000);
    expect(performance.now() - start).toBeLessThan(2_000 + 1_000);
  });

  it('a second call of countDown is a second count', async () => {
    const latch = openLocks().countDownLatch('twice');
    await latch.trySetCount(3);
    await latch.countDown();
    expect(await latch.countDown()).toBe(1);
  });

  it('a key is one kind of lock, and a server that refuses is an error at once', async () => {
    const locks = openLocks();
    await locks.acquire('kind', { keyTimeout: 60_000 });
    await expect(locks.countDownLatch('kind').trySetCount(1)).rejects.toThrow(LockConfigError);
    await setting.redis.hset('data', 'field', 'value');
    await expect(locks.countDownLatch('data').countDown()).rejects.toThrow(StoreError);
  });
});
