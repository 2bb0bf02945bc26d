import { LockAbortedError, LockTimeoutError, StoreError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { HEAD_START, SLACK, loadScripts, outcomeOf, useRedis } from './setting.js';

const KEY = 'order:42';
/** So long that a test that waited it out would fail. */
const KEY_TIMEOUT = 60_000;

const setting = useRedis();
let proxy: TcpProxy;

beforeEach(async () => {
  await loadScripts(setting.redis);
  proxy = await setting.proxy();
});

/** Locks with an open connection through the proxy, so that only what follows is late. */
async function connected(whose: 'own' | 'borrowed', requestTimeout = 5_000): Promise<Locks> {
  const locks = setting[whose](proxy.connection, { requestTimeout });
  await locks.using('warm-up', () => undefined, { waitTimeout: 10_000 });
  await setting.redis.flushall();
  return locks;
}

/** The fence tells that the server granted it. */
const onlyTheFenceIsLeft = () => eventually(async () => (await setting.keys()).join() === `{${KEY}}:fence`);

describe('an acquire that is given up while its request is under way', () => {
  describe.each(['own', 'borrowed'] as const)("on the store's %s connection", (whose) => {
    it.each(['requests', 'replies'] as const)(
      'by its signal, with late %s: rejects at once, and a release follows it (G6, G7, G9)',
      async (direction) => {
        const locks = await connected(whose);
        proxy.delay(1_500, 0, direction);
        const caller = new AbortController();
        const reason = new Error('the client hung up');
        const call = outcomeOf(locks.acquire(KEY, { keyTimeout: KEY_TIMEOUT, waitTimeout: Infinity, signal: caller.signal }));
        setTimeout(() => caller.abort(reason), 50);
        const { error, took } = await call;
        expect(error).toBeInstanceOf(LockAbortedError);
        expect(error).toMatchObject({ reason: 'signal', cause: reason });
        expect(took).toBeLessThan(1_400);
        await proxy.heal();
        await onlyTheFenceIsLeft();
      },
    );

    it('by the end of its patience: rejects within one requestTimeout more, and a release follows it (G6, G7, G9)', async () => {
      const locks = await connected(whose, 300);
      proxy.delay(1_000, 0, 'replies');
      const { error, took } = await outcomeOf(locks.acquire(KEY, { keyTimeout: KEY_TIMEOUT, waitTimeout: 200, retryInterval: 50 }));
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ transient: true });
      expect(took).toBeGreaterThanOrEqual(200 - HEAD_START);
      expect(took).toBeLessThan(500 + SLACK);
      await proxy.heal();
      await onlyTheFenceIsLeft();
    });
  });

  it('in the middle of its turn in a queue leaves the queue (G7)', async () => {
    const locks = await connected('own');
    const holder = await setting.own().acquire(KEY, { keyTimeout: KEY_TIMEOUT });
    // Once its inbox is open, the first request joins the queue.
    expect((await outcomeOf(locks.acquire(KEY, { fair: true, waitTimeout: 300 }))).error).toBeInstanceOf(LockTimeoutError);
    await setting.redis.config('RESETSTAT');
    proxy.delay(300, 0, 'requests');
    const caller = new AbortController();
    const call = outcomeOf(locks.acquire(KEY, { fair: true, waitTimeout: Infinity, signal: caller.signal }));
    setTimeout(() => caller.abort(), 50);
    expect((await call).error).toBeInstanceOf(LockAbortedError);
    await eventually(async () => (await setting.redis.info('commandstats')).includes('cmdstat_zadd'));
    await eventually(async () => !(await setting.redis.exists(`{${KEY}}:queue`)));
    expect(await setting.redis.get(KEY)).toBe(holder.owner);
  });

  it('before the server knows its script, and answered too late, sends the script no more: no orphan stays (G6)', async () => {
    const locks = await connected('borrowed', 200);
    // The release that follows finds its script, so it would not come behind a second request of the acquire.
    await setting.redis.script('FLUSH');
    await loadScripts(setting.redis, ['release']);
    await setting.redis.config('RESETSTAT');
    proxy.delay(400, 0, 'replies');
    const { error } = await outcomeOf(locks.acquire(KEY, { keyTimeout: KEY_TIMEOUT, waitTimeout: 0 }));
    expect(error).toBeInstanceOf(StoreError);
    const count = async (command: string): Promise<number> =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await setting.redis.info('commandstats'))?.[1] ?? 0);
    await eventually(async () => (await count('evalsha')) > 1);
    await proxy.heal();
    await locks.close();
    expect(await setting.keys()).toEqual([]);
    expect(await count('eval')).toBe(0);
  });
});

describe('a grant whose answer is late', () => {
  it('later than its lease was long starts nothing, and frees the key (G1, G3, G7)', async () => {
    const locks = await connected('own');
    proxy.delay(500, 0, 'replies');
    const body = jest.fn();
    const { error } = await outcomeOf(locks.using(KEY, body, { keyTimeout: 300, waitTimeout: 0 }));
    await proxy.heal();
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true, message: expect.stringContaining('only after the 300 ms of its lease') });
    expect(body).not.toHaveBeenCalled();
    await onlyTheFenceIsLeft();
  });

  it('is valid from before the request was sent, not from the answer (G3)', async () => {
    const locks = await connected('own');
    proxy.delay(400, 0, 'both');
    const lease = await locks.acquire(KEY, { keyTimeout: 3_000, waitTimeout: 0 });
    expect(lease.remaining()).toBeLessThanOrEqual(3_000 * 0.99 - 800 + 1);
    expect(lease.remaining()).toBeLessThan(await setting.redis.pttl(KEY));
    await proxy.heal();
    await lease.release();
  });
});
