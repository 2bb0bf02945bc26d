import { eventually } from '../../support/eventually.js';
import type { As } from './locker.child.js';
import { useRedis } from './setting.js';
import { AT_ONCE, lockers, queued, turnOf, woken, wokenChild } from './waiting.js';

const KEY = 'order:42';
const POOL = { permits: 3 };
/** More than are served in one step. */
const CROWD = 1_500;

describe('of those who share a key, a process that was killed while it waited for more than is free', () => {
  const setting = useRedis();

  const lockOf = (as: As) => {
    const locks = setting.own();
    return typeof as === 'string' ? locks.readWriteLock(KEY)[as] : locks.semaphore(KEY, as);
  };

  it.each<[string, As, As]>([
    ['the whole key', 'write', 'read'],
    ['all permits', { ...POOL, count: 3 }, POOL],
  ])('(%s) holds up nobody whom the rest suffices for, however long others hold theirs (G8)', async (_what, wanted, as) => {
    const [child] = await lockers(setting, 1);
    const held = await lockOf(as).acquire(woken);
    child!.send({ type: 'acquire', key: KEY, as: wanted, options: wokenChild });
    await queued(setting, KEY, 1);
    expect(await lockOf(as).tryAcquire(woken)).toBeNull();
    await child!.kill();
    await eventually(async () => (await setting.redis.client('LIST', 'TYPE', 'PUBSUB')) === '');
    const first = await lockOf(as).tryAcquire(woken);
    expect(first).not.toBeNull();
    const start = performance.now();
    const { lease, at } = await turnOf(lockOf(as).acquire(woken));
    expect(at - start).toBeLessThan(AT_ONCE);
    for (const each of [held, first!, lease]) expect(await each.release()).toBe(true);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('with a crowd of callers is passed over at once with the release, though nobody of it goes on (G8)', async () => {
    const [child] = await lockers(setting, 1);
    const one = { permits: 1 };
    // Each of them has a place of its own.
    const held = await lockOf(one).acquire({ ...woken, fair: true });
    for (let i = 0; i < CROWD; i++) child!.send({ type: 'acquire', key: KEY, as: one, options: { ...wokenChild, fair: true } });
    await queued(setting, KEY, CROWD);
    const inboxes = async () => (await setting.redis.zrange(`{${KEY}}:queue`, '0', '-1')).map((place) => place.split('\n')[1]);
    await eventually(async () => expect(await inboxes()).not.toContain(''));
    const next = turnOf(lockOf(one).acquire({ ...woken, fair: true }));
    await queued(setting, KEY, CROWD + 1);
    await child!.kill();
    const start = performance.now();
    await held.release();
    const { lease, at } = await next;
    expect(at - start).toBeLessThan(AT_ONCE);
    expect(await lease.release()).toBe(true);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });
});
