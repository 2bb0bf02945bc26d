import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.js';
import { deposit } from './account.js';
import type { LockerMessage } from './locker.child.js';
import type { Findings, PausedMessage } from './paused.child.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';
import { random } from '../../support/random.js';

const KEY_TIMEOUT = 1_000;
const patient = { keyTimeout: KEY_TIMEOUT, waitTimeout: 30_000 };

describe('a process that holds a key', () => {
  const setting = useRedis();

  it('and is killed at any moment leaves it to the next within keyTimeout, and nothing behind (G7, G8)', async () => {
    const keys = Array.from({ length: 4 }, (_, i) => `key:${i}`);
    const holders = await Promise.all(keys.map(() => setting.fork<LockerMessage>('locker.child.ts', setting.server.connection)));
    const locks = setting.own();
    await Promise.all(
      holders.map(async (holder, i) => {
        const key = keys[i]!;
        await holder.waitFor('ready', { within: 30_000 });
        holder.send({ type: 'cycle', key, options: patient });
        await eventually(() => setting.redis.exists(`{${key}}:fence`).then(Boolean));
        await new Promise((resolve) => setTimeout(resolve, random() * 50));
        await holder.kill();
        const { value, took } = await outcomeOf(locks.acquire(key, patient));
        expect(took).toBeLessThan(KEY_TIMEOUT + 1_000 + SLACK);
        expect(await value?.release()).toBe(true);
      }),
    );
    expect(await setting.keys()).toEqual(keys.map((key) => `{${key}}:fence`));
  });

  it('and is renewed by nobody else: it expires though another process renews its own (G5)', async () => {
    const locks = setting.own();
    const mine = await locks.acquire('mine', patient);
    const holder = await setting.fork<LockerMessage>('locker.child.ts', setting.server.connection);
    await holder.waitFor('ready', { within: 30_000 });
    holder.send({ type: 'acquire', key: 'theirs', options: patient });
    await holder.waitFor('granted');
    await holder.kill();
    await eventually(async () => (await setting.redis.exists('theirs')) === 0, { within: KEY_TIMEOUT + SLACK });
    mine.assertHeld();
    expect(await mine.release()).toBe(true);
  });

  it('and is paused past its lease neither believes that it holds nor writes over another, where tokens are checked (G2, G3, G5)', async () => {
    const flag = join(tmpdir(), `paused-${process.pid}`);
    setting.finally(() => rmSync(flag, { force: true }));
    const holder = await setting.fork<PausedMessage>('paused.child.ts', { connection: setting.server.connection, flag });
    await holder.waitFor('holding', { within: 30_000 });
    holder.pause();

    const next = await setting.own().acquire('account', patient);
    const balance = await deposit.read(setting.redis);
    expect(await deposit.write(setting.redis, balance + 1, next.fencingToken!)).toBe('written');
    await deposit.writeUnchecked(setting.redis, balance + 1);
    await eventually(async () => (await setting.redis.exists('other')) === 0, { within: KEY_TIMEOUT + SLACK });
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
    // Two deposits were made. The one that tokens refused is known to have failed; the other overwrote its like and nobody knows.
    expect(await setting.redis.hgetall('balance')).toMatchObject({ checked: '1', unchecked: '1' });
  });
});
