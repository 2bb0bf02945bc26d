import type { Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import type { Child } from '../../support/child.js';
import type { As, LockerMessage } from './locker.child.js';
import { endOf, SLACK, useRedis } from './setting.js';
import { AT_ONCE, lockers, queued, turnOf, woken, wokenChild } from './waiting.js';

const KEY = 'order:42';
const KEY_TIMEOUT = 2_000;
/** How long a waiter that does not answer keeps what it is offered. */
const OFFER = 1_000;
const short = { ...woken, keyTimeout: KEY_TIMEOUT };
const POOL = { permits: 2 };

describe('of those who share a key, a process that', () => {
  const setting = useRedis();

  const take = async (child: Child<LockerMessage>, as: As, keyTimeout = woken.keyTimeout) => {
    child.send({ type: 'acquire', key: KEY, as, options: { ...wokenChild, keyTimeout } });
    return child.waitFor('granted');
  };
  /** Waits for what it is told to. */
  const wait = async (child: Child<LockerMessage>, as: As, place: number, keyTimeout = woken.keyTimeout) => {
    child.send({ type: 'acquire', key: KEY, as, options: { ...wokenChild, keyTimeout } });
    await queued(setting, KEY, place);
  };
  const lockOf = (locks: Locks, as: As) => (typeof as === 'string' ? locks.readWriteLock(KEY)[as] : locks.semaphore(KEY, as));
  const holders = () => setting.redis.zcount(KEY, 1, '+inf');

  it('is killed as a reader loses its own share when its lease has run out, while another one is renewed: then a writer may come (G7, G8)', async () => {
    const [child] = await lockers(setting, 1);
    const locks = setting.own();
    const lost = jest.fn();
    locks.on('lost', lost);
    const mine = await lockOf(locks, 'read').acquire(short);
    await take(child!, 'read', KEY_TIMEOUT);
    const writer = turnOf(lockOf(setting.own(), 'write').acquire(short));
    await queued(setting, KEY, 1);
    await child!.kill();
    const start = performance.now();
    expect(await holders()).toBe(2);
    // Nobody sweeps: the writer asks when the longest lease that it knows of has run out, and finds one gone and one renewed.
    await eventually(async () => (await holders()) === 1, { within: 2 * KEY_TIMEOUT + SLACK });
    expect(performance.now() - start).toBeGreaterThan(KEY_TIMEOUT / 3);
    const end = endOf(mine);
    await eventually(() => endOf(mine) > end + 100, { within: KEY_TIMEOUT });
    mine.assertHeld();
    const released = performance.now();
    expect(await mine.release()).toBe(true);
    const { lease, at } = await writer;
    expect(at - released).toBeLessThan(AT_ONCE);
    expect(lost).not.toHaveBeenCalled();
    await lease.release();
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  it('is killed while it holds one of the permits leaves the other ones as they are (G2, G8)', async () => {
    const [child] = await lockers(setting, 1);
    const mine = await lockOf(setting.own(), POOL).acquire(short);
    await take(child!, POOL, KEY_TIMEOUT);
    const next = turnOf(lockOf(setting.own(), POOL).acquire(short));
    await queued(setting, KEY, 1);
    await child!.kill();
    const start = performance.now();
    const { lease, at } = await next;
    expect(at - start).toBeLessThan(KEY_TIMEOUT + OFFER + SLACK);
    mine.assertHeld();
    expect(await lockOf(setting.own(), POOL).tryAcquire()).toBeNull();
    for (const each of [mine, lease]) expect(await each.release()).toBe(true);
    expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
  });

  describe.each<[string, As, As, As]>([
    ['a writer', 'write', 'read', 'read'],
    ['a reader', 'read', 'write', 'write'],
    ['one who wants permits', { permits: 2, count: 2 }, POOL, POOL],
  ])('waits first, as %s,', (_who, head, held, behind) => {
    const count = behind === 'write' ? 1 : 2;

    async function line(keyTimeout = woken.keyTimeout) {
      const [child] = await lockers(setting, 1);
      const holder = await lockOf(setting.own(), held).acquire({ ...woken, keyTimeout });
      await wait(child!, head, 1, keyTimeout);
      const turns: ReturnType<typeof turnOf>[] = [];
      for (let place = 2; place < 2 + count; place++) {
        turns.push(turnOf(lockOf(setting.own(), behind).acquire({ ...woken, keyTimeout })));
        await queued(setting, KEY, place);
      }
      return { child: child!, holder, turns };
    }

    it('and is killed holds up nobody: those behind have their turn at once with the release (G7, G8)', async () => {
      const { child, holder, turns } = await line();
      await child.kill();
      const start = performance.now();
      await holder.release();
      for (const { lease, at } of await Promise.all(turns)) {
        expect(at - start).toBeLessThan(AT_ONCE);
        await lease.release();
      }
      expect(await setting.keys()).toEqual([`{${KEY}}:fence`]);
    });
  });
});
