import { setTimeout as pause } from 'node:timers/promises';
import { type AcquireOptions, LockError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { SLACK, useRedis } from './setting.js';
import { killSubscribers } from './waiting.js';
import { random } from '../../support/random.js';

const KEYS = ['one', 'other'];
const CALLERS = 40;
const CALLS = 12;
/** Longer than all of it: whose lease has run out, nobody can count on here. */
const KEY_TIMEOUT = 120_000;

const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!;

describe('callers on all terms, in several stores, over connections and inboxes that break, with scripts that are forgotten', () => {
  const setting = useRedis();

  it('are never in together, see tokens that only grow, end in time, and leave nothing behind (G2, G6, G7, G8, G9)', async () => {
    const proxy = await setting.proxy();
    const stores = [setting.own(proxy.connection), setting.own(proxy.connection), setting.borrowed(proxy.connection), setting.own()];
    const lost: unknown[] = [];
    for (const locks of stores) locks.on('lost', (event) => lost.push(event));
    const inside = new Map<string, number>();
    const tokens = new Map<string, number>();
    let served = 0;
    let failed = 0;

    async function section(key: string, token: number): Promise<void> {
      expect(inside.get(key) ?? 0).toBe(0);
      expect(token).toBeGreaterThan(tokens.get(key) ?? 0);
      tokens.set(key, token);
      inside.set(key, 1);
      await pause(random() * 3);
      inside.set(key, 0);
      served++;
    }

    async function call(locks: Locks): Promise<void> {
      const key = oneOf(...KEYS);
      const caller = new AbortController();
      const patience = oneOf(0, 20, 300, 30_000, 30_000, 30_000);
      const options: AcquireOptions = {
        keyTimeout: oneOf(KEY_TIMEOUT, KEY_TIMEOUT, KEY_TIMEOUT / 2),
        waitTimeout: patience,
        retryInterval: oneOf(20, 500, 2_000),
        fair: random() < 0.2,
        minHold: oneOf(0, 0, 0, 0, 20),
        signal: caller.signal,
      };
      if (random() < 0.2) setTimeout(() => caller.abort(), random() * 200);
      const start = performance.now();
      let error: unknown;
      let began = Infinity;
      await locks
        .using(
          key,
          (lease) => {
            began = performance.now();
            return section(key, lease.fencingToken!);
          },
          options,
        )
        .catch((reason: unknown) => (error = reason));
      if (error === undefined) return;
      expect(error).toBeInstanceOf(LockError);
      failed++;
      expect(began).toBe(Infinity);
      expect(performance.now() - start).toBeLessThan(patience + 1_000 + SLACK);
      expect(['LOCK_TIMEOUT', 'LOCK_ABORTED', 'LOCK_STORE']).toContain((error as LockError).code);
    }

    let isRunning = true;
    const trouble = (async () => {
      while (isRunning) {
        await pause(random() * 60);
        const fault = oneOf(0, 1, 2, 3);
        if (fault === 0) proxy.cut();
        else if (fault === 1) await killSubscribers(setting);
        else if (fault === 2) await setting.redis.script('FLUSH');
        else await setting.redis.call('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES');
      }
    })();
    const work = async (i: number): Promise<void> => {
      for (let calls = 0; calls < CALLS; calls++) await call(stores[i % stores.length]!);
    };
    try {
      await Promise.all(Array.from({ length: CALLERS }, (_, i) => work(i)));
    } finally {
      isRunning = false;
      await trouble;
    }
    expect(served + failed).toBe(CALLERS * CALLS);
    expect(served).toBeGreaterThan(CALLERS);
    expect(lost).toEqual([]);
    await eventually(async () => expect((await setting.keys()).filter((key) => !key.endsWith(':fence'))).toEqual([]), { within: 10_000 });
  }, 90_000);
});
