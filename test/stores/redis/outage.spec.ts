import { Redis } from 'ioredis';
import { LockLostError, StoreError, type Lease, type Locks } from 'nestjs-distributed-lock/core';
import { rejection } from '../../support/rejection.js';
import { eventually } from '../../support/eventually.js';
import { isIoredis } from '../../support/redis-clients.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { outcomeOf, useRedis } from './setting.js';
import { woken } from './waiting.js';

const KEY = 'order:42';
const REQUEST_TIMEOUT = 2_000;
const endless = { ...woken, retryInterval: 100 };
const setting = useRedis();
let proxy: TcpProxy;
let locks: Locks;

beforeEach(async () => {
  proxy = await setting.proxy();
  locks = setting.own(proxy.connection, { requestTimeout: REQUEST_TIMEOUT });
  setting.finally(() => proxy.heal());
});

/** Neither the open connections nor new ones. */
function down(): void {
  proxy.refuse();
  proxy.cut();
}

const OUTAGES: [string, { begin(): unknown; end(): unknown }][] = [
  ['is killed and started again', { begin: () => setting.server.kill(), end: () => setting.server.restart() }],
  ['cannot be reached, nor the end of its connections be seen', { begin: () => proxy.blackhole(), end: () => proxy.heal() }],
];

/** Resolves when the call has asked in vain. */
const askedTwice = async (call: () => Promise<Lease>) => {
  const asks = jest.spyOn(locks.store.mutex, 'acquire');
  const lease = call();
  lease.catch(() => undefined);
  await eventually(() => asks.mock.calls.length > 1);
  return { lease };
};

it.each(OUTAGES)(
  'while the server %s, a result comes through, the wait timeout ends as an outage, and an endless wait goes on (G7, G9, G10)',
  async (_, outage) => {
    const work = async () => {
      await outage.begin();
      return 'result';
    };
    expect(await locks.using(KEY, work, woken)).toBe('result');
    const body = jest.fn();
    const { error, took } = await outcomeOf(() => locks.using('other', body, { waitTimeout: 700, retryInterval: 50 }));
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ transient: true });
    expect(took).toBeGreaterThanOrEqual(700 - 5);
    expect(body).not.toHaveBeenCalled();
    const call = await askedTwice(() => locks.acquire(KEY, endless));
    await outage.end();
    const lease = await call.lease;
    expect(await setting.redis.get(KEY)).toBe(lease.owner);
    expect(await lease.release()).toBe(true);
  },
);

it('an outage during a hold longer than the lease loses it at its real end, not sooner, and the result comes with the error (G3, G4, G10)', async () => {
  const work = async (lease: Lease): Promise<string> => {
    const loss = new Promise<unknown>((resolve) => lease.signal.addEventListener('abort', () => resolve(lease.signal.reason)));
    const start = performance.now();
    const left = lease.remaining();
    down();
    expect(await loss).toBeInstanceOf(LockLostError);
    expect(performance.now() - start).toBeGreaterThanOrEqual(left - 5);
    expect(() => lease.assertHeld()).toThrow(LockLostError);
    return 'result';
  };
  const error = await rejection(locks.using(KEY, work, { keyTimeout: 5_000 }));
  expect(error).toBeInstanceOf(LockLostError);
  expect((error as LockLostError).result).toBe('result');
});

describe('a connection', () => {
  it('that has gone silent under many requests is ended once, without a warning of ioredis about its listeners', async () => {
    await locks.using('warm-up', () => undefined, woken);
    const end = jest.spyOn(Redis.prototype, 'disconnect');
    proxy.silence();
    const calls: Promise<unknown>[] = [];
    // What is asked in one tick of the event loop goes as one request.
    for (let i = 0; i < 12; i++) {
      calls.push(rejection(locks.tryAcquire(`order:${i}`)));
      await new Promise(setImmediate);
    }
    for (const error of await Promise.all(calls)) expect(error).toBeInstanceOf(StoreError);
    if (isIoredis) expect(end).toHaveBeenCalledTimes(1);
  });

  it('that has ended by itself is made again, as ioredis does not when Sentinel announces a failover while it connects', async () => {
    locks = setting.own({ ...proxy.connection, retryStrategy: () => null }, { requestTimeout: REQUEST_TIMEOUT });
    await locks.using('warm-up', () => undefined, woken);
    down();
    const call = await askedTwice(() => locks.acquire(KEY, endless));
    await proxy.heal();
    await (await call.lease).release();
  });
});
