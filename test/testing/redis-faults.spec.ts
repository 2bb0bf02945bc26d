// Faults before a real server, in real time.
import { LockLostError, LockTimeoutError, StoreError } from 'nestjs-distributed-lock/core';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import { faultyStore, LockProbe } from 'nestjs-distributed-lock/testing';
import { lockMatchers } from 'nestjs-distributed-lock/testing/jest';
import { useRedis } from '../stores/redis/setting.js';
import { eventually } from '../support/eventually.js';
import { pause } from '../support/time.js';

expect.extend(lockMatchers);
const setting = useRedis();

function open() {
  const locks = new Locks(faultyStore(redisStore({ client: setting.client() })), { logger: false });
  const probe = new LockProbe(locks);
  setting.finally(async () => {
    probe.faults.clear();
    await locks.close();
    probe.onApplicationShutdown();
  });
  return { locks, probe, faults: probe.faults };
}

it('lose: another owner has the key at the server', async () => {
  const { locks, probe, faults } = open();
  const lease = await locks.acquire('k', { keyTimeout: 2_000 });
  await faults.lose('k');
  expect(lease.signal.reason).toBeInstanceOf(LockLostError);
  expect(await setting.redis.get('k')).toMatch(/^someone-else@/);
  expect(await lease.release()).toBe(false);
  expect(probe).toHaveLost('k');
  // It does not give it back: the key is free when its lease is over.
  await using _next = await locks.acquire('k', { waitTimeout: 10_000 });
  expect(probe).toHaveWaited('k', { atLeast: 500 });
});

it.each(['acquire', 'renew', 'release'] as const)('dropReply(%s): nothing', async (request) => {
  const { locks, probe, faults } = open();
  const dropped = faults.dropReply(request);
  await locks.using('k', () => pause(1_500), { keyTimeout: 3_000 });
  await dropped;
  await eventually(async () => expect(await setting.redis.exists('k')).toBe(0));
  expect(probe).toHoldNothing();
});

it('outage and timeOut: StoreError, LockTimeoutError', async () => {
  const { locks, faults } = open();
  faults.outage(200);
  await expect(locks.acquire('k', { waitTimeout: 0 })).rejects.toBeInstanceOf(StoreError);
  await using _lease = await locks.acquire('k', { waitTimeout: 5_000 });
  faults.timeOut('other');
  await expect(locks.acquire('other', { waitTimeout: 50 })).rejects.toBeInstanceOf(LockTimeoutError);
});

it('a real stall costs the lease', async () => {
  const { locks, probe, faults } = open();
  const lease = await locks.acquire('k', { keyTimeout: 300 });
  await faults.stall(500);
  await eventually(() => expect(lease.signal.aborted).toBe(true));
  expect(probe.events.map(({ event }) => event)).toContain('lag');
});

it('holdElsewhere: a waiter is woken when it is released', async () => {
  const { locks, probe } = open();
  await probe.holdElsewhere('k', { for: 300 });
  await using lease = await locks.acquire('k', { waitTimeout: 10_000 });
  lease.assertHeld();
  expect(probe).toHaveWaited('k', { atLeast: 250 });
  expect(probe).not.toHaveWaited('k', { atLeast: 5_000 });
});
