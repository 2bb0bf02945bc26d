import { Redis } from 'ioredis';
import type { Locks } from 'nestjs-distributed-lock/core';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { startLines } from '../../doctor/examined.js';
import { eventually } from '../../support/eventually.js';
import { SentinelSetup } from '../../support/redis-sentinel.js';
import { startCallers } from './callers.js';
import type { EndsArgs, EndsMessage } from './ends.child.js';
import { useRedis } from './setting.js';
import { woken } from './waiting.js';

const REQUEST_TIMEOUT = 500;
const patient = { ...woken, retryInterval: 50 };

const setting = useRedis(); // the resource
let setup: SentinelSetup;
beforeEach(async () => {
  setup = new SentinelSetup();
  // Behind the clients, which end first.
  setting.finally(() => setup.stop());
  await setup.start();
});

const store = (): RedisStoreOptions & object => ({
  sentinels: setup.addresses,
  name: setup.name,
  requestTimeout: REQUEST_TIMEOUT,
});
const FORMS: Record<'options' | 'client', () => Locks> = {
  options: () => setting.overIoredis(store()),
  client() {
    const client = new Redis({ sentinels: setup.addresses, name: setup.name, lazyConnect: true });
    return setting.locks({ client, requestTimeout: REQUEST_TIMEOUT });
  },
};

const COMMAND = 'a command';
const WAYS: Record<string, () => Promise<unknown>> = {
  'a killed master': () => setup.master.kill(),
  'a stopped master': () => setup.master.pause(),
  async [COMMAND]() {
    const sentinel = setup.sentinels[0]!.client();
    await sentinel.call('SENTINEL', 'FAILOVER', setup.name);
    sentinel.disconnect();
  },
};

/** Resolves when another server is the master. */
async function promotion(): Promise<void> {
  const others = setup.servers.filter((server) => server !== setup.master).map((server) => server.client());
  await eventually(async () => (await Promise.all(others.map((other) => other.role()))).some(([role]) => role === 'master'));
  for (const other of others) other.disconnect();
}

/** Resolves when the former master, which answers, follows the new one. */
async function demotion(): Promise<void> {
  const former = setup.master.client();
  await eventually(async () => expect((await former.role())[0]).toBe('slave'));
  former.disconnect();
}

/** What stores of one form do before a failover, and after it. */
async function holdOver(form: keyof typeof FORMS, way: string): Promise<(promoted: Promise<void>) => Promise<void>> {
  const [locks, others, waiters] = [FORMS[form](), FORMS[form](), FORMS[form]()];
  const [kept, left, free] = ['kept', 'left', 'free'].map((name) => `${form}:${name}`) as [string, string, string];
  const [lease, leaving] = [await locks.acquire(kept, woken), await locks.acquire(left, woken)];
  const waiting = waiters.acquire(kept, woken);
  const hasWaiter = () => eventually(async () => expect((await locks.inspect(kept)).waiters).toHaveLength(1));
  await hasWaiter();
  return async (promoted) => {
    // A former master that still answers takes requests until it is a replica, and what it takes then is forgotten.
    if (way === COMMAND) await demotion();
    // It may be lost on its way: then it is sent again.
    await leaving.release().catch(() => undefined);
    await promoted;
    await locks.using(free, () => undefined, patient);
    lease.assertHeld();
    await eventually(() => lease.renew());
    await lease.release();
    const next = await waiting;
    // From now on the subscribers are at the new master.
    const last = others.acquire(kept, woken);
    await hasWaiter();
    await next.release();
    await (await last).release();
    const again = await others.acquire(left, patient);
    expect(again.fencingToken).toBeGreaterThan(leaving.fencingToken!);
    if (way === 'a stopped master') {
      // It takes itself for the master until the sentinels tell it.
      await setup.master.resume();
      expect(await locks.tryAcquire(left)).toBeNull();
      await demotion();
      again.assertHeld();
      expect(await locks.tryAcquire(left)).toBeNull();
    }
    expect(await again.release()).toBe(true);
    await locks.using(left, () => undefined, patient);
  };
}

it.each(['options', 'client'] as const)(
  'an app with the %s of Sentinel says at its start which master of which sentinels has its locks',
  async (form) => {
    const { store } = FORMS[form]();
    const sentinels = setup.addresses.map(({ host, port }) => `${host}:${port}`).sort();
    const at = `at the master "${setup.name}" of sentinels ${sentinels.join(', ')}, database 0, answers in `;
    // A master that has just begun may answer late.
    await eventually(async () => expect((await startLines(store)).join()).toContain(at));
  },
);

it.each(Object.keys(WAYS))(
  'a failover by %s keeps leases, wakes waiters, and loses no update of the callers of several processes (G2, G4, G8, G9)',
  async (way) => {
    const options = { keyTimeout: 3_000, waitTimeout: 2_000, retryInterval: 200 };
    const callers = await startCallers(setting, 2, { store: store(), keys: ['stock'], callers: 25, options });
    const held = await Promise.all((['options', 'client'] as const).map((form) => holdOver(form, way)));
    await callers.goOn(200);
    await setup.synced();
    await WAYS[way]!();
    const promoted = promotion();
    await Promise.all(held.map((goOn) => goOn(promoted)));
    await callers.goOn(200);
    for (const { errors, final, refused } of await callers.stop()) {
      // An old holder is refused at most once per process.
      expect(refused).toBeLessThanOrEqual(1);
      expect(final).toEqual([]);
      for (const error of errors) expect(error).toMatch(/^LOCK_(STORE|TIMEOUT) /);
    }
  },
);

it('a process with a store over Sentinel ends by itself when it has closed it, whatever it did with it (G7)', async () => {
  const ways: EndsArgs['way'][] = ['never uses it', 'closes it', 'closes it with a lease that is held', 'closes it while it connects'];
  for (const way of ways) {
    const child = await setting.fork<EndsMessage>('ends.child.ts', { connection: {}, store: store(), way } satisfies EndsArgs);
    expect({ way, exit: await child.exit, output: child.output() }).toEqual({ way, exit: { code: 0, signal: null }, output: '' });
  }
});
