import { getEventListeners } from 'node:events';
import net, { type Socket } from 'node:net';
import type { Locks, LockStore } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { gate } from '../../support/gate.js';
import { heldBy } from '../../contract/held-by.js';
import { eventually } from '../../support/eventually.js';
import { startSentinel } from '../../support/redis-sentinel.js';
import { startRedis } from '../../support/redis-server.js';
import { outcomeOf, useRedis } from './setting.js';
import { inboxes, queued, subscribers, woken } from './waiting.js';

const KEYS = ['order:1', 'order:2'];
const WAITERS = 400;
const KEYS_TAKEN = 300;
const setting = useRedis();

interface Sized {
  readonly size: number;
}
/** What the engine remembers, by the names of its private parts. */
interface Internals {
  readonly queues: { readonly all: readonly unknown[] };
  readonly runtime: { readonly running: Record<'acquire' | 'body' | 'cleanUp', number>; readonly onChange: unknown[] };
  readonly store: LockStore & {
    mutex: {
      wakeUps: { listeners: Sized; entries: { byOwner: Sized }; redis: { requests: { open: Sized }; unsent: Sized } };
    };
  };
}

/** How much is remembered, by what remembers it. */
function memory(locks: Locks): Record<string, number> {
  const { queues, runtime, store } = locks['engine'] as unknown as Internals;
  const { wakeUps } = store.mutex;
  return {
    'local queues': queues.all.length,
    leases: heldBy(locks) + runtime.running.body,
    'clean-up': runtime.running.cleanUp,
    acquires: runtime.running.acquire + runtime.onChange.length,
    'queue entries': wakeUps.entries.byOwner.size,
    'wake-ups': wakeUps.listeners.size,
    requests: wakeUps.redis.requests.open.size + wakeUps.redis.unsent.size,
  };
}

const activeTimers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('hundreds of waiters of one process that all give up leave nothing behind (G7)', () => {
  let locks: Locks;
  let caller: AbortController;
  let outcomes: Promise<string[]>;
  let timers: number;

  /** Until each of them has its queue entry. A tenth of them are fair, and have entries of their own. */
  async function wait(of: Locks): Promise<void> {
    locks = of;
    caller = new AbortController();
    const calls = Array.from({ length: WAITERS }, (_, i) =>
      locks.acquire(KEYS[Math.floor(i / 2) % 2]!, { ...woken, fair: i % 10 === 0, signal: caller.signal }).then(
        () => 'granted',
        ({ code }: { code: string }) => code,
      ),
    );
    outcomes = Promise.all(calls);
    for (const key of KEYS) await queued(setting, key, WAITERS / 10 / KEYS.length + 1);
  }

  async function holdAll(): Promise<void> {
    const strangers = setting.own();
    await Promise.all(KEYS.map((key) => strangers.acquire(key, woken)));
    // So that nothing of it is taken for ours: its connection and its renewal have their timers.
    timers = activeTimers();
  }

  async function expectNothing(keys: string[]): Promise<void> {
    await eventually(() => expect(Object.entries(memory(locks)).filter(([, size]) => size !== 0)).toEqual([]));
    expect(await setting.keys()).toEqual(keys);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
    await eventually(() => expect(activeTimers()).toBeLessThanOrEqual(timers + 1));
    for (const key of KEYS) expect(await setting.redis.exists(`{${key}}:queue`)).toBe(0);
  }
  const held = [...KEYS, ...KEYS.map((key) => `{${key}}:fence`)].sort();

  it.each<[string, () => unknown, number]>([
    ['when their callers call them off', () => caller.abort(), 1],
    ['when their Locks are closed', () => locks.close(), 0],
  ])('%s', async (_when, end, listening) => {
    await holdAll();
    await wait(setting.own());
    await end();
    expect(new Set(await outcomes)).toEqual(new Set(['LOCK_ABORTED']));
    await expectNothing(held);
    await eventually(async () => expect([await subscribers(setting), (await inboxes(setting)).length]).toEqual([listening, listening]));
  });

  it('in the moment of their grant', async () => {
    const strangers = setting.own();
    const holders = await Promise.all(KEYS.map((key) => strangers.acquire(key, woken)));
    timers = activeTimers();
    await wait(setting.own());
    const releases = holders.map((holder) => holder.release());
    caller.abort();
    await Promise.all(releases);
    expect(new Set(await outcomes)).toEqual(new Set(['LOCK_ABORTED']));
    await expectNothing(KEYS.map((key) => `{${key}}:fence`));
  });

  it.each(['while they are in the queue', 'and others before they could ask for a queue entry'])('in an outage, %s', async (when) => {
    await holdAll();
    const proxy = await setting.proxy();
    await wait(setting.own(proxy.connection, { requestTimeout: 2_000 }));
    proxy.refuse();
    if (when.startsWith('while')) proxy.cut();
    else {
      // The inbox stays, so that a queue entry is wanted with the first request, which is not sent.
      await setting.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await eventually(() => proxy.connections === 1);
      const late = Array.from({ length: 20 }, () =>
        locks.acquire(KEYS[0]!, { ...woken, fair: true, waitTimeout: 300 }).catch(() => undefined),
      );
      await Promise.all(late);
    }
    caller.abort();
    expect(new Set(await outcomes)).toEqual(new Set(['LOCK_ABORTED']));
    await proxy.heal();
    await expectNothing(held);
  });
});

it('after hundreds of keys were acquired and released, and others given up, nothing stays at the server but fences that expire by themselves, and two connections at most for each store, one of them its inbox (G7)', async () => {
  const before = (await setting.redis.client('LIST')) as string;
  // Across a connection that breaks an orphan may live for a while (G6), and a machine that stands still must not break these.
  const calm = { requestTimeout: 30_000 };
  const stores = [setting.own(undefined, calm), setting.own(undefined, calm)];
  const holder = await stores[0]!.acquire('taken', woken);

  await Promise.all(
    Array.from({ length: KEYS_TAKEN }, async (_, i) => {
      const locks = stores[i % 2]!;
      const lease = await locks.acquire(`key:${i}`, { ...woken, fair: i % 3 === 0 });
      expect(await lease.release()).toBe(true);
      if (i % 10 > 0) return;
      const caller = new AbortController();
      const abandoned = [
        outcomeOf(locks.tryAcquire('taken')),
        outcomeOf(locks.acquire('taken', { waitTimeout: 20, fair: i % 20 === 0 })),
        outcomeOf(locks.acquire(`abandoned:${i}`, { ...woken, signal: caller.signal })),
        outcomeOf(locks.acquire('taken', { ...woken, fair: true, signal: caller.signal })),
      ];
      caller.abort();
      await Promise.all(abandoned);
    }),
  );

  const clients = (await setting.redis.client('LIST')) as string;
  expect(clients.trim().split('\n').length).toBeLessThanOrEqual(before.trim().split('\n').length + 2 * stores.length);
  await holder.release();
  await Promise.all(stores.map((locks) => locks.close()));
  const keys = await setting.keys();
  expect(keys.filter((key) => !key.endsWith(':fence'))).toEqual([]);
  expect(keys.length).toBeGreaterThan(KEYS_TAKEN);
  const ends = (await setting.redis.pipeline(keys.map((key) => ['pttl', key])).exec())!.map(([, ttl]) => Number(ttl));
  expect(Math.min(...ends)).toBeGreaterThan(0);
  const after = (await setting.redis.client('LIST')) as string;
  expect(after.trim().split('\n')).toHaveLength(before.trim().split('\n').length);
});

it.each([
  ['its client', 1],
  ['its inbox', 2],
])('a store behind sentinels that is closed while it connects leaves no connection of %s (G7)', async (_what, connection) => {
  const master = await startRedis({ port: 'free' });
  const sentinel = await startSentinel({ name: 'shop', master });
  setting.finally(() => Promise.all([sentinel.stop(), master.stop()]));
  setting.finally(() => jest.restoreAllMocks());
  const store = redisStore({ sentinels: [{ host: '127.0.0.1', port: sentinel.port! }], name: 'shop' });
  const sockets: Socket[] = [];
  let toMaster = 0;
  const closed = gate();
  const connect = net.createConnection;
  jest.spyOn(net, 'createConnection').mockImplementation((...args: Parameters<typeof connect>) => {
    const socket = connect(...args);
    sockets.push(socket);
    const isLast = (args[0] as { port?: number }).port === master.port && ++toMaster === connection;
    // It is not connected before the next turn of the event loop.
    if (isLast) process.nextTick(() => void store.close().then(closed.open));
    return socket;
  });
  await outcomeOf(store.mutex.check({ key: 'key', owner: 'nobody' }));
  if (connection > 1) void store.mutex.wakeUps!.open(() => undefined);
  await closed.passed;
  await eventually(() => sockets.every(({ closed }) => closed));
  expect(toMaster).toBe(connection);
});
