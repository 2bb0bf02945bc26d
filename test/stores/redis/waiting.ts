import type { AcquireOptions, Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import type { Child } from '../../support/child.js';
import type { LockerMessage } from './locker.child.js';
import type { Setting } from './setting.js';

/** A waiter asks by itself only after the time limit of a test, and no lease runs out before: without a wake-up the test fails. */
export const woken = { keyTimeout: 300_000, waitTimeout: Infinity, retryInterval: 300_000 };
/** As an option of a child: JSON knows no Infinity. */
export const wokenChild = { ...woken, waitTimeout: 600_000 };

export const INBOXES = 'nestjs-distributed-lock:inbox:*';

/** Those who wait for the key are in its queue. */
export const queued = ({ redis }: Setting, key: string, count: number): Promise<boolean> =>
  eventually(async () => (await redis.zcard(`{${key}}:queue`)) === count, { every: 5 });

/** How often a script was asked for. */
export const scriptCalls = async ({ redis }: Pick<Setting, 'redis'>): Promise<number> =>
  Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1] ?? 0);

export const killSubscribers = ({ redis }: Setting): Promise<unknown> => redis.client('KILL', 'TYPE', 'PUBSUB');

/** The inboxes of all stores break long before, just before or just after this: in each round another one. */
export function breakInboxesAround(setting: Setting, round: number, act: () => Promise<unknown>): Promise<unknown> {
  const kill = () => killSubscribers(setting);
  const orders = [() => kill().then(act), () => Promise.all([kill(), act()]), () => Promise.all([act(), kill()])];
  return orders[round % orders.length]!();
}

/** A caller of `locks` waits for a key of another store. Returns what passes it on: the waiter is granted it. */
export async function waiterFor(setting: Setting, key: string, locks: Locks, options: AcquireOptions = woken, other = setting.own()) {
  const holder = await other.acquire(key, woken);
  const waiting = locks.acquire(key, options);
  return async (): Promise<void> => {
    expect(await holder.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  };
}

export const inboxes = async ({ redis }: Setting): Promise<string[]> => (await redis.pubsub('CHANNELS', INBOXES)) as string[];

export async function subscribers({ redis }: Setting): Promise<number> {
  const list = (await redis.client('LIST', 'TYPE', 'PUBSUB')) as string;
  return list.split('\n').filter((line) => line !== '').length;
}

/** Processes that take and give back what they are told to. */
export async function lockers(
  setting: Setting,
  count: number,
  connection: object = setting.server.connection,
): Promise<Child<LockerMessage>[]> {
  const forked = Array.from({ length: count }, () => setting.fork<LockerMessage>('locker.child.ts', connection));
  const children = await Promise.all(forked);
  await Promise.all(children.map((child) => child.waitFor('ready')));
  return children;
}

/** One of `others` waits and is woken by the release of another one's lease, again and again. */
export async function expectWoken(setting: Setting, locks: Locks, others: Locks, key: string): Promise<void> {
  let holder = await locks.acquire(key, woken);
  for (const next of [others, locks, others]) {
    const waiting = next.acquire(key, woken);
    if (next === others) await queued(setting, key, 1);
    expect(await holder.release()).toBe(true);
    const lease = await waiting;
    expect(lease.fencingToken).toBeGreaterThan(holder.fencingToken!);
    holder = lease;
    holder.assertHeld();
  }
  expect(await holder.release()).toBe(true);
}

/** Callers of several stores add to a counter that nothing else guards. */
export async function expectExclusion(stores: readonly Locks[]): Promise<void> {
  let counter = 0;
  let last = 0;
  const call = (locks: Locks) =>
    locks.using(
      'count',
      async (lease) => {
        expect(lease.fencingToken).toBeGreaterThan(last);
        last = lease.fencingToken!;
        const seen = counter;
        await new Promise(setImmediate);
        counter = seen + 1;
      },
      { ...woken, retryInterval: 50 },
    );
  await Promise.all(Array.from({ length: 30 }, (_, i) => call(stores[i % stores.length]!)));
  expect(counter).toBe(30);
}

/** The entries of a queue, in their order. */
export const entriesOf = ({ redis }: Setting, key: string): Promise<string[]> => redis.zrange(`{${key}}:queue`, '0', '-1');
/** The inbox in an entry; '': its process has none. */
export const inboxIn = (entry: string): string => entry.split('\n')[1]!;
