import { Redis } from 'ioredis';
import type { Locks } from 'nestjs-distributed-lock/core';
import type { RedisStoreOptions } from 'nestjs-distributed-lock/redis';
import { eventually } from '../../support/eventually.js';
import { SentinelSetup } from '../../support/redis-sentinel.js';
import type { EndsArgs, EndsMessage } from './ends.child.js';
import type { FailoverArgs, FailoverMessage } from './failover.child.js';
import { isIoredis } from '../../support/redis-clients.js';
import { outcomeOf, SLACK, useRedis } from './setting.js';

const REQUEST_TIMEOUT = 500;
const PATIENCE = 2000;
/** A client is usable within so many milliseconds of the promotion. */
// The sentinel of node-redis pauses for a second between two tries, and is not told when the master is another one.
const BACK = { own: 1000, lent: isIoredis ? 1000 : 3000 };
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
const FORMS: Record<'own' | 'lent', () => Locks> = {
  own: () => setting.overIoredis(store()),
  lent() {
    if (!isIoredis) return setting.locks(store());
    const client = new Redis({ sentinels: setup.addresses, name: setup.name, failoverDetector: true });
    client.on('error', () => undefined);
    setting.finally(() => client.disconnect());
    return setting.locks({ client, requestTimeout: REQUEST_TIMEOUT });
  },
};

const HUNG = 'a stopped master';
const WAYS: Record<string, () => Promise<unknown>> = {
  'a killed master': () => setup.master.kill(),
  [HUNG]: () => setup.master.pause(),
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

/** Resolves when the former master, which answers, follows the new one. */
async function demotion(): Promise<void> {
  const former = setup.master.client();
  await eventually(async () => expect((await former.role())[0]).toBe('slave'), { within: 40_000, every: 20 });
  former.disconnect();
}

const CASES = Object.keys(WAYS).map((way) => [way, 'own'] as const);
// That of node-redis stays with a master that hangs until it answers again.
const IN_PROCESSES = Object.keys(WAYS).filter((way) => isIoredis || way !== HUNG);
const LENT = isIoredis ? ['a command'] : IN_PROCESSES;

it.each([...CASES, ...LENT.map((way) => [way, 'lent'] as const)])(
  'a failover by %s keeps a lease, wakes its waiter, and is over within a second, with a client that is %s (G4, G8)',
  async (way, form) => {
    const [locks, others, waiters] = [FORMS[form](), FORMS[form](), FORMS[form]()];
    const [lease, left] = [await locks.acquire('kept', NEVER_POLLS), await locks.acquire('left', NEVER_POLLS)];
    const waiting = waiters.acquire('kept', NEVER_POLLS);
    await eventually(async () => expect((await locks.inspect('kept')).waiters).toHaveLength(1));
    await setup.synced();
    await WAYS[way]!();
    const promoted = promotion();
    expect((await outcomeOf(left.release())).took).toBeLessThan(REQUEST_TIMEOUT + SLACK);
    await promoted;
    // node-redis asks the former master until it calls itself a replica: what that one grants until then is forgotten.
    if (way === 'a command' && form === 'lent' && !isIoredis) await demotion();
    expect((await outcomeOf(locks.using('free', () => undefined, { ...NEVER_POLLS, retryInterval: 50 }))).took).toBeLessThan(
      BACK[form] + SLACK,
    );
    lease.assertHeld();
    await lease.renew();
    await lease.release();
    const woken = await outcomeOf(waiting);
    expect(woken.error).toBeUndefined();
    expect(woken.took).toBeLessThan(BACK[form] + SLACK);
    // From now on a hand-over is quick again, so the subscribers are at the new master.
    const next = others.acquire('kept', NEVER_POLLS);
    await eventually(async () => expect((await locks.inspect('kept')).waiters).toHaveLength(1));
    await woken.value!.release();
    const last = await outcomeOf(next);
    expect(last.took).toBeLessThan(SLACK);
    await last.value!.release();
    // The release may have been lost on its way: then it was sent again.
    const again = await outcomeOf(others.acquire('left', { ...NEVER_POLLS, retryInterval: 50 }));
    expect(again.error).toBeUndefined();
    expect(again.value!.fencingToken).toBeGreaterThan(left.fencingToken!);
    if (way === HUNG) {
      // It takes itself for the master until the sentinels tell it.
      await setup.master.resume();
      expect(await locks.tryAcquire('left')).toBeNull();
      await demotion();
      again.value!.assertHeld();
      expect(await locks.tryAcquire('left')).toBeNull();
    }
    expect(await again.value!.release()).toBe(true);
    await locks.using('left', () => undefined, { ...NEVER_POLLS, retryInterval: 50 });
  },
);

it.each<EndsArgs['way']>(['never uses it', 'closes it', 'closes it with a lease that is held', 'closes it while it connects'])(
  'a process with a store over Sentinel that %s ends by itself (G7)',
  async (way) => {
    const child = await setting.fork<EndsMessage>('ends.child.ts', { connection: {}, store: store(), way } satisfies EndsArgs);
    await eventually(() => !child.running, { within: 20_000 });
    expect(await child.exit).toEqual({ code: 0, signal: null });
    expect(child.output()).toBe('');
  },
);

it.each(IN_PROCESSES)(
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
