import type { RedisOptions } from 'ioredis';
import type { Lease, Locks } from 'nestjs-distributed-lock/core';
import { eventually } from '../../support/eventually.js';
import type { Child } from '../../support/child.js';
import type { LockerMessage } from './locker.child.js';
import type { Setting } from './setting.js';

/** Between two looks of its own a waiter lets a minute pass, and no lease runs out: only a wake-up explains a turn that comes soon. */
export const woken = { keyTimeout: 60_000, waitTimeout: Infinity, retryInterval: 60_000 };
/** As an option of a child: JSON knows no Infinity. */
export const wokenChild = { ...woken, waitTimeout: 120_000 };
/** Milliseconds within which that counts as at once, on a loaded machine. */
export const AT_ONCE = 1_000;

/** Ways in which a client may speak that change what we see of it. */
export const CLIENTS: [string, RedisOptions][] = [
  ['RESP2', { protocol: 2 }],
  ['RESP3', { protocol: 3 }],
  ['a keyPrefix', { keyPrefix: 'shop:' }],
  ['another database', { db: 3 }],
  ['automatic pipelining', { enableAutoPipelining: true }],
  ['replies that are numbers as strings', { stringNumbers: true }],
];

export const INBOXES = 'nestjs-distributed-lock:inbox:*';

/** Those who wait for the key are in its queue. */
export const queued = ({ redis }: Setting, key: string, count: number, prefix = ''): Promise<boolean> =>
  eventually(async () => (await redis.zcard(`${prefix}{${prefix}${key}}:queue`)) === count, { within: 10_000, every: 5 });

/** How often a script was asked for. */
export const scriptCalls = async ({ redis }: Setting): Promise<number> =>
  Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1] ?? 0);

export const killSubscribers = ({ redis }: Setting): Promise<unknown> => redis.client('KILL', 'TYPE', 'PUBSUB');

export const inboxes = async ({ redis }: Setting): Promise<string[]> => (await redis.pubsub('CHANNELS', INBOXES)) as string[];

export async function subscribers({ redis }: Setting): Promise<number> {
  const list = (await redis.client('LIST', 'TYPE', 'PUBSUB')) as string;
  return list.split('\n').filter((line) => line !== '').length;
}

/** A lease that came, and when. */
export interface Turn {
  readonly lease: Lease;
  /** on the clock of `performance.now` */
  readonly at: number;
}

export async function turnOf(acquiring: Promise<Lease>): Promise<Turn> {
  return { lease: await acquiring, at: performance.now() };
}

/** Processes that take and give back what they are told to. */
export async function lockers(
  setting: Setting,
  count: number,
  connection: object = setting.server.connection,
): Promise<Child<LockerMessage>[]> {
  const forked = Array.from({ length: count }, () => setting.fork<LockerMessage>('locker.child.ts', connection));
  const children = await Promise.all(forked);
  await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
  return children;
}

/** One of `others` waits and is woken at once by the release of another one's lease, again and again. */
export async function expectWoken(setting: Setting, locks: Locks, others: Locks, key: string, prefix = ''): Promise<void> {
  let holder = await locks.acquire(key, woken);
  for (const next of [others, locks, others]) {
    const waiting = turnOf(next.acquire(key, woken));
    if (next === others) await queued(setting, key, 1, prefix);
    const start = performance.now();
    expect(await holder.release()).toBe(true);
    const { lease, at } = await waiting;
    expect(at - start).toBeLessThan(AT_ONCE);
    expect(lease.fencingToken).toBeGreaterThan(holder.fencingToken!);
    holder = lease;
    holder.assertHeld();
  }
  expect(await holder.release()).toBe(true);
}
