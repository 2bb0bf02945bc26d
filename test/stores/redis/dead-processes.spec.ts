import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Lease, Locks } from 'nestjs-distributed-lock/core';
import type { Child } from '../../support/child.js';
import { eventually, staysTrue } from '../../support/eventually.js';
import { deposit } from './account.js';
import type { As, LockerMessage } from './locker.child.js';
import type { Findings, PausedMessage } from './paused.child.js';
import { endOf, useRedis } from './setting.js';
import { lockers, queued, subscribers, woken, wokenChild } from './waiting.js';

/** Milliseconds: the lease of a process that dies. */
const KEY_TIMEOUT = 6_000;
const setting = useRedis();

function lockOf(locks: Locks, key: string, as?: As) {
  if (as === undefined) return locks.mutex(key);
  return typeof as === 'string' ? locks.readWriteLock(key)[as] : locks.semaphore(key, as);
}
const take = (key: string, as?: As, keyTimeout = woken.keyTimeout): Promise<Lease> =>
  lockOf(setting.own(), key, as).acquire({ ...woken, keyTimeout });
const order = (child: Child<LockerMessage>, key: string, as?: As, keyTimeout = woken.keyTimeout) =>
  child.send({ type: 'acquire', key, as, options: { ...wokenChild, keyTimeout } });
const fencesOf = (keys: readonly string[]) => keys.map((key) => `{${key}}:fence`).sort();

/** Nobody waits for an offer of theirs to end. */
async function lengthenOffers(key: string): Promise<void> {
  const queue = `{${key}}:queue`;
  const all = await setting.redis.zrange(queue, '0', '-1', 'WITHSCORES');
  for (let i = 0; i < all.length; i += 2) {
    const longer = all[i]!.replace(/^(.*\n.*\n)\d+/, '$1600000');
    await setting.redis
      .multi()
      .zrem(queue, all[i]!)
      .zadd(queue, Number(all[i + 1]), longer)
      .exec();
  }
}

describe('a process that waits for a key', () => {
  const POOL = { permits: 2 };

  it('and is killed holds up nobody: waiters behind it are granted the key with the release (G7, G8)', async () => {
    const ROWS: [string, As | undefined, As | undefined, As | undefined, number][] = [
      ['mutex', undefined, undefined, undefined, 1],
      ['writer before readers', 'read', 'write', 'read', 2],
      ['reader before a writer', 'write', 'read', 'write', 1],
      ['permits', POOL, { permits: 2, count: 2 }, POOL, 2],
    ];
    const [child] = await lockers(setting, 1);
    const lines = await Promise.all(
      ROWS.map(async ([key, held, wanted, behind, count]) => {
        const holder = await take(key, held);
        order(child!, key, wanted);
        await queued(setting, key, 1);
        const turns = Array.from({ length: count }, () => take(key, behind));
        await queued(setting, key, 1 + count);
        await lengthenOffers(key);
        return { holder, turns };
      }),
    );
    const others = await subscribers(setting);
    await child!.kill();
    await eventually(async () => (await subscribers(setting)) === others - 1);
    for (const { holder, turns } of lines) {
      await holder.release();
      for (const lease of await Promise.all(turns)) await lease.release();
    }
    expect(await setting.keys()).toEqual(fencesOf(ROWS.map(([key]) => key)));
  });

  it('and wants more than is free, and is killed, holds up no waiter that the rest suffices for (G8)', async () => {
    const ROWS: [string, As, As][] = [
      ['the whole key', 'write', 'read'],
      ['all permits', { permits: 3, count: 3 }, { permits: 3 }],
    ];
    const [child] = await lockers(setting, 1);
    const held: Lease[] = [];
    for (const [key, wanted, as] of ROWS) {
      held.push(await take(key, as));
      order(child!, key, wanted);
      await queued(setting, key, 1);
      expect(await lockOf(setting.own(), key, as).tryAcquire(woken)).toBeNull();
    }
    await child!.kill();
    await eventually(async () => (await subscribers(setting)) === 0);
    for (const [key, , as] of ROWS) {
      const first = await lockOf(setting.own(), key, as).tryAcquire(woken);
      expect(first).not.toBeNull();
      for (const lease of [first!, await take(key, as)]) expect(await lease.release()).toBe(true);
    }
    for (const lease of held) expect(await lease.release()).toBe(true);
    expect(await setting.keys()).toEqual(fencesOf(ROWS.map(([key]) => key)));
  });

  it('and hangs is still granted the key within its offer, or learns that its offer is over and does not run (G1, G2, G8)', async () => {
    const KEY = 'order:42';
    const [child] = await lockers(setting, 1);
    const holder = await take(KEY);
    order(child!, KEY);
    await queued(setting, KEY, 1);
    await lengthenOffers(KEY);
    child!.pause();
    await holder.release();
    child!.resume();
    const { token, owner } = await child!.waitFor('granted');
    expect(await setting.redis.get(KEY)).toBe(owner);
    child!.send({ type: 'release', key: KEY });
    await child!.waitFor('released');

    const again = await take(KEY);
    expect(again.fencingToken).toBeGreaterThan(token);
    order(child!, KEY);
    await queued(setting, KEY, 1);
    const next = take(KEY);
    await queued(setting, KEY, 2);
    child!.pause();
    await again.release();
    const lease = await next;
    child!.resume();
    // It has seen the offer of a second ago, has asked, and waits again.
    await queued(setting, KEY, 1);
    await staysTrue(async () => {
      lease.assertHeld();
      return (await setting.redis.get(KEY)) === lease.owner;
    });
    await lease.release();
    expect((await child!.waitFor('granted')).token).toBeGreaterThan(lease.fencingToken!);
  });
});

describe('a process that holds keys', () => {
  it('and is killed at any moment leaves them to the next when the lease ends, and nothing behind (G7, G8)', async () => {
    const keys = Array.from({ length: 4 }, (_, i) => `key:${i}`);
    const [child] = await lockers(setting, 1);
    for (const key of keys) child!.send({ type: 'cycle', key, options: { ...wokenChild, keyTimeout: KEY_TIMEOUT } });
    await eventually(async () => (await setting.redis.exists(...fencesOf(keys))) === keys.length);
    await child!.kill();
    const locks = setting.own();
    await Promise.all(keys.map((key) => locks.using(key, () => undefined, woken)));
    expect(await setting.keys()).toEqual(fencesOf(keys));
  });

  it('and is killed loses its own shares, and leaves the other ones as they are (G2, G5, G7, G8)', async () => {
    const pool = { permits: 2 };
    const ROWS: [string, As | undefined, As | undefined][] = [
      ['mutex', undefined, undefined],
      ['doc', 'read', 'write'],
      ['pool', pool, pool],
    ];
    const [holder, waiter] = await lockers(setting, 2);
    const locks = setting.own();
    const lost = jest.fn();
    locks.on('lost', lost);
    const mine = new Map<string, Lease>();
    for (const key of ['mine', 'doc', 'pool']) {
      const as = ROWS.find(([name]) => name === key)?.[1];
      mine.set(key, await lockOf(locks, key, as).acquire({ ...woken, keyTimeout: KEY_TIMEOUT }));
    }
    for (const [key, as] of ROWS) order(holder!, key, as, KEY_TIMEOUT);
    for (let i = 0; i < ROWS.length; i++) await holder!.waitFor('granted');
    // Killed as well, before its turn.
    order(waiter!, 'mutex');
    await queued(setting, 'mutex', 1);
    const turns = new Map(ROWS.map(([key, , wanted]) => [key, take(key, wanted, KEY_TIMEOUT)]));
    await queued(setting, 'mutex', 2);
    for (const key of ['doc', 'pool']) await queued(setting, key, 1);
    await Promise.all([holder!.kill(), waiter!.kill()]);

    for (const key of ['mutex', 'pool']) expect(await (await turns.get(key))!.release()).toBe(true);
    // The writer asks when the longest lease that it knows of has run out, and finds one gone and one renewed.
    await eventually(async () => (await setting.redis.zcount('doc', 1, '+inf')) === 1);
    const end = endOf(mine.get('doc')!);
    await eventually(() => endOf(mine.get('doc')!) > end + 100);
    for (const lease of mine.values()) lease.assertHeld();
    for (const lease of mine.values()) expect(await lease.release()).toBe(true);
    await (await turns.get('doc'))!.release();
    expect(lost).not.toHaveBeenCalled();
    expect(await setting.keys()).toEqual(fencesOf(['mine', 'mutex', 'doc', 'pool']));
  });

  it('and is paused past its lease neither believes that it holds nor writes over another, where tokens are checked (G2, G3, G5)', async () => {
    const flag = join(tmpdir(), `paused-${process.pid}`);
    setting.finally(() => rmSync(flag, { force: true }));
    rmSync(flag, { force: true });
    const holder = await setting.fork<PausedMessage>('paused.child.ts', { connection: setting.server.connection, flag });
    await holder.waitFor('holding');
    holder.pause();

    const next = await take('account');
    const balance = await deposit.read(setting.redis);
    expect(await deposit.write(setting.redis, balance + 1, next.fencingToken!)).toBe('written');
    await deposit.writeUnchecked(setting.redis, balance + 1);
    await eventually(async () => (await setting.redis.exists('other')) === 0);
    writeFileSync(flag, '');
    holder.resume();

    expect(await holder.waitFor('findings')).toEqual<Findings>({
      type: 'findings',
      remaining: 0,
      assertHeld: 'LockLostError',
      signalAborted: true,
      checkedWrite: 'refused',
      uncheckedWrite: 'written',
      error: 'LockLostError',
      result: 'late',
    });
    next.assertHeld();
    expect(await next.release()).toBe(true);
    // Two deposits were made. The one that tokens refused is known to have failed; the other overwrote the first one unnoticed.
    expect(await setting.redis.hgetall('balance')).toMatchObject({ checked: '1', unchecked: '1' });
  });
});
