import { type AcquireOptions, LockError, type Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import { random } from '../../support/random.js';
import { useRedis } from './setting.js';
import { killSubscribers } from './waiting.js';

const KEYS = ['one', 'other'];
const CALLERS = 40;
const CALLS = 12;
/** Milliseconds: longer than all of it, so that no lease runs out. */
const KEY_TIMEOUT = 600_000;

const oneOf = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!;

describe('callers with all options, in several stores, over connections and inboxes that break, with scripts that are forgotten', () => {
  const setting = useRedis();

  it('never hold a key together, see tokens that only grow, and leave nothing behind (G2, G6, G7, G8)', async () => {
    const proxy = await setting.proxy();
    const stores = [setting.own(proxy.connection), setting.own(proxy.connection), setting.borrowed(proxy.connection), setting.own()];
    const lost: unknown[] = [];
    for (const locks of stores) locks.on('lost', (event) => lost.push(event));
    const inside = new Set<string>();
    const tokens = new Map<string, number>();
    let served = 0;
    let failed = 0;
    const FAULTS: (() => Promise<unknown>)[] = [
      async () => proxy.cut(),
      () => killSubscribers(setting),
      () => setting.redis.script('FLUSH'),
      () => setting.redis.call('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES'),
    ];

    async function section(key: string, token: number): Promise<void> {
      expect(inside.has(key)).toBe(false);
      expect(token).toBeGreaterThan(tokens.get(key) ?? 0);
      tokens.set(key, token);
      inside.add(key);
      for (let stay = Math.floor(random() * 5); stay > 0; stay--) await setting.redis.ping();
      if (random() < 0.1) await oneOf(...FAULTS)();
      inside.delete(key);
      served++;
    }

    async function call(locks: Locks): Promise<void> {
      const key = oneOf(...KEYS);
      const caller = new AbortController();
      const options: AcquireOptions = {
        keyTimeout: oneOf(KEY_TIMEOUT, KEY_TIMEOUT, KEY_TIMEOUT / 2),
        waitTimeout: oneOf(0, 20, 300, KEY_TIMEOUT, KEY_TIMEOUT, KEY_TIMEOUT),
        retryInterval: oneOf(20, 500, 2_000),
        fair: random() < 0.2,
        minHold: oneOf(0, 0, 0, 0, 20),
        signal: caller.signal,
      };
      let hasBegun = false;
      const work = locks.using(
        key,
        ({ fencingToken }) => {
          hasBegun = true;
          return section(key, fencingToken!);
        },
        options,
      );
      if (random() < 0.2) void setting.redis.ping().then(() => caller.abort());
      const error = await work.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error === undefined) return;
      expect(error).toBeInstanceOf(LockError);
      failed++;
      expect(hasBegun).toBe(false);
      expect(['LOCK_TIMEOUT', 'LOCK_ABORTED', 'LOCK_STORE']).toContain((error as LockError).code);
    }

    const work = async (i: number): Promise<void> => {
      for (let calls = 0; calls < CALLS; calls++) await call(stores[i % stores.length]!);
    };
    await Promise.all(Array.from({ length: CALLERS }, (_, i) => work(i)));
    expect(served + failed).toBe(CALLERS * CALLS);
    expect(served).toBeGreaterThan(CALLERS);
    expect(lost).toEqual([]);
    await eventually(async () => expect((await setting.keys()).filter((key) => !key.endsWith(':fence'))).toEqual([]));
  });
});
