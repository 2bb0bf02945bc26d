import { Redis } from 'ioredis';
import type { Locks } from 'nestjs-distributed-lock/core';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { SentinelSetup } from '../../support/redis-sentinel.js';
import type { FailoverArgs, FailoverMessage } from './failover.child.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const REQUEST_TIMEOUT = 500;
const PATIENCE = 2000;
/** A client is usable within so many milliseconds of the promotion. */
const BACK = 1000;
/** Nobody who is woken by a message asks so late. */
const NEVER_POLLS = { keyTimeout: 60_000, waitTimeout: 60_000, retryInterval: 30_000 };

const setting = useRedis(); // the resource
jest.setTimeout(90_000);
let setup: SentinelSetup;
beforeEach(async () => {
  setup = new SentinelSetup();
  // Behind the clients, which end first.
  setting.finally(() => setup.stop());
  await setup.start();
}, 40_000);

const store = (): RedisStoreOptions & object => ({
  sentinels: setup.addresses,
  name: setup.name,
  requestTimeout: REQUEST_TIMEOUT,
});
const FORMS: Record<string, () => Locks> = {
  own: () => setting.overIoredis(store()),
  borrowed() {
    const client = new Redis({ sentinels: setup.addresses, name: setup.name, failoverDetector: true });
    client.on('error', () => undefined);
    setting.finally(() => client.disconnect());
    return setting.locks({ client, requestTimeout: REQUEST_TIMEOUT });
  },
};

const WAYS: Record<string, () => Promise<unknown>> = {
  'a killed master': () => setup.master.kill(),
  'a stopped master': () => setup.master.pause(),
  async 'a command'() {
    const sentinel = setup.sentinels[0]!.client();
    await sentinel.call('SENTINEL', 'FAILOVER', setup.name);
    sentinel.disconnect();
  },
};

/** Resolves at the moment when another server is the master. */
async function promotion(): Promise<void> {
  const others = setup.servers.filter((server) => server !== setup.master).map((server) => server.client());
  const isPromoted = async (): Promise<boolean> =>
    (await Promise.all(others.map((other) => other.role()))).some(([role]) => role === 'master');
  await eventually(isPromoted, { within: 40_000, every: 5 });
}

const CASES = Object.keys(WAYS).map((way) => [way, 'own'] as const);

it.each([...CASES, ['a command', 'borrowed'] as const])(
  'a failover by %s keeps a lease, wakes its waiter, and is over within a second, with a client that is %s (G4, G8)',
  async (way, form) => {
    const [locks, others, waiters] = [FORMS[form]!(), FORMS[form]!(), FORMS[form]!()];
    const [lease, left] = [await locks.acquire('kept', NEVER_POLLS), await locks.acquire('left', NEVER_POLLS)];
    const waiting = waiters.acquire('kept', NEVER_POLLS);
    await eventually(async () => expect((await locks.inspect('kept')).waiters).toHaveLength(1));
    await setup.synced();
    await WAYS[way]!();
    const promoted = promotion();
    expect((await outcomeOf(left.release())).took).toBeLessThan(REQUEST_TIMEOUT + SLACK);
    await promoted;
    expect((await outcomeOf(locks.using('free', () => undefined, { ...NEVER_POLLS, retryInterval: 50 }))).took).toBeLessThan(BACK + SLACK);
    lease.assertHeld();
    await lease.renew();
    await lease.release();
    const woken = await outcomeOf(waiting);
    expect(woken.error).toBeUndefined();
    expect(woken.took).toBeLessThan(BACK + SLACK);
    // From now on a hand-over is quick again, so the subscribers are at the new master.
    const next = others.acquire('kept', NEVER_POLLS);
    await eventually(async () => expect((await locks.inspect('kept')).waiters).toHaveLength(1));
    await woken.value!.release();
    const last = await outcomeOf(next);
    expect(last.took).toBeLessThan(SLACK);
    await last.value!.release();
  },
);

it.each(Object.keys(WAYS))(
  'a failover by %s loses no update of 4 processes with 25 callers each, and no call outlasts its patience (G2, G9)',
  async (way) => {
    const args: FailoverArgs = { store: store(), resource: setting.server.connection, callers: 25, patience: PATIENCE };
    const children = await Promise.all([1, 2, 3, 4].map(() => setting.fork<FailoverMessage>('failover.child.ts', args)));
    for (const child of children) await child.waitFor('ready', { within: 20_000 });
    const balance = async (): Promise<number> => Number(await setting.redis.hget('deposit', 'balance'));
    const grows = async (): Promise<void> => {
      const reached = await balance();
      await eventually(async () => expect(await balance()).toBeGreaterThan(reached + 200), { within: 15_000 });
    };
    await grows();
    await WAYS[way]!();
    await promotion();
    await grows();
    for (const child of children) child.send({});
    const found = await Promise.all(children.map((child) => child.waitFor('done', { within: PATIENCE + 10_000 })));
    const sum = (of: 'written' | 'refused'): number => found.reduce((all, one) => all + one[of], 0);
    expect(await balance()).toBe(sum('written'));
    // An old holder is refused at most once per process.
    expect(sum('refused')).toBeLessThanOrEqual(4);
    // What a call says that ended meanwhile.
    for (const { errors } of found) for (const code of Object.keys(errors)) expect(['LOCK_STORE', 'LOCK_TIMEOUT']).toContain(code);
    expect(found.filter(({ final }) => final !== undefined)).toEqual([]);
    for (const { longest } of found) expect(longest).toBeLessThan(REQUEST_TIMEOUT + SLACK);
  },
);
