import { StoreError, type Lock, type Locks } from 'nestjs-distributed-lock/core';
import { setTimeout as pause } from 'node:timers/promises';
import { useRedis } from './setting.js';

const KEY_TIMEOUT = 600;

const KINDS: [string, (locks: Locks, key: string) => Lock][] = [
  ['mutexes', (locks, key) => locks.mutex(key)],
  ['write locks', (locks, key) => locks.readWriteLock(key).write],
  ['semaphores', (locks, key) => locks.semaphore(key, { permits: 2 })],
];

describe.each(KINDS)('one key that the user may not use, among %s', (_kind, lockOf) => {
  const setting = useRedis({ password: 'secret' });
  const allow = (...rules: string[]) => setting.redis.acl('SETUSER', 'app', 'on', '>pass', '+@all', '&*', 'resetkeys', ...rules);
  const open = () => setting.own({ ...setting.server.connection, username: 'app', password: 'pass' });
  const ours = (names: string[]) => names.flatMap((name) => [`~${name}`, `~{${name}}:*`]);

  it('fails no other acquire and no other release of the same turn (G4)', async () => {
    await allow(...ours(['a', 'b', 'c', 'd']));
    const locks = open();
    const keys = ['a', 'forbidden', 'b', 'c', 'forbidden too', 'd'];
    const outcomes = await Promise.allSettled(keys.map((key) => lockOf(locks, key).acquire({ waitTimeout: 0, keyTimeout: KEY_TIMEOUT })));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled']);
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue;
      expect(outcome.reason).toMatchObject({ name: 'StoreError', transient: false, message: expect.stringContaining('NOPERM') });
    }
    const leases = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true, true, true]);
  });

  it('that he may use no more loses no other lease, and its own is told as unknown until it ends (G4)', async () => {
    await allow(...ours(['a', 'b', 'c', 'd']));
    const locks = open();
    const unknown = jest.fn();
    const lost = jest.fn();
    locks.on('unknown', ({ key, error }) => unknown(key, error));
    locks.on('lost', ({ key }) => lost(key));
    const leases = await Promise.all(['a', 'b', 'c', 'd'].map((key) => lockOf(locks, key).acquire({ keyTimeout: KEY_TIMEOUT })));
    await allow(...ours(['a', 'b', 'd']));
    await pause(3 * KEY_TIMEOUT);
    expect(lost.mock.calls).toEqual([['c']]);
    expect(new Set(unknown.mock.calls.map(([key]) => key))).toEqual(new Set(['c']));
    expect(unknown).toHaveBeenCalledWith('c', expect.any(StoreError));
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual([true, true, false, true]);
  });
});

describe.each(KINDS)('a server that is full', (_kind, lockOf) => {
  const setting = useRedis({ args: ['--maxmemory-policy', 'noeviction'] });
  afterEach(() => setting.redis.config('SET', 'maxmemory', 0));

  it(`renews the leases of ${_kind}, and takes them back (G4)`, async () => {
    const locks = setting.own();
    const lost = jest.fn();
    locks.on('lost', lost);
    const [short, long, kept] = [lockOf(locks, 'a'), lockOf(locks, 'b'), lockOf(locks, 'c')];
    const leases = [
      await short.acquire({ keyTimeout: KEY_TIMEOUT }),
      await long.acquire({ keyTimeout: 30_000 }),
      await kept.acquire({ keyTimeout: 30_000, minHold: 2_500 }),
    ];
    // A second holder of the same key, whose lease ends later than the one that is renewed.
    const beside = _kind === 'semaphores' ? [await lockOf(locks, 'a').acquire({ keyTimeout: 30_000, reentrant: false })] : [];
    await setting.redis.config('SET', 'maxmemory', 1);
    await expect(setting.redis.set('x', '1')).rejects.toThrow('OOM');
    await pause(3 * KEY_TIMEOUT);
    expect(lost).not.toHaveBeenCalled();
    // By itself: behind a release that freed memory the server would allow what it refuses first.
    expect(await leases.pop()!.release()).toBe(true);
    expect(await Promise.all([...leases, ...beside].map((lease) => lease.release()))).not.toContain(false);
    const left = await setting.redis.pttl('c');
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(2_500);
    expect(await setting.redis.exists('a', 'b')).toBe(0);
    // What is not ours is lost, and no outage.
    const other = await setting.redis.config('SET', 'maxmemory', 0).then(() => lockOf(setting.own(), 'd').acquire({ keyTimeout: 30_000 }));
    await setting.redis.config('SET', 'maxmemory', 1);
    for (const driver of [locks.store.mutex, locks.store.readWriteLock!.write, locks.store.semaphore!])
      expect(await driver.release({ key: 'd', owner: 'nobody', keepFor: 0 })).toBe('lost');
    expect(await other.release()).toBe(true);
  });
});
