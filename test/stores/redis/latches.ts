import { createHash } from 'node:crypto';
import type { Locks } from 'nestjs-distributed-lock/core';
import { scripts } from '../../../lib/stores/redis/lua.scripts.js';
import type { Child } from '../../support/child.js';
import { eventually } from '../../support/eventually.js';
import type { LatchMessage } from './latch.child.js';
import type { Setting } from './setting.js';

/** Between two looks of its own a waiter lets a minute pass: only a wake-up explains an end that comes soon. */
export const wokenByCount = { waitTimeout: 120_000, retryInterval: 60_000 };

/** Those who are noted to wait. */
export const waitersOf = async ({ redis }: Setting, key: string): Promise<string[]> =>
  (await redis.hkeys(key)).filter((field) => field.startsWith('waiter:'));

export const noted = (setting: Setting, key: string, count: number): Promise<boolean> =>
  eventually(async () => (await waitersOf(setting, key)).length === count, { within: 10_000, every: 5 });

/** The name by which the server knows a script of the latch. */
export const latchShaOf = (verb: keyof typeof scripts.latch): string => createHash('sha1').update(scripts.latch[verb]).digest('hex');

/** So that each request is one command. */
export async function loadLatchScripts({ redis }: Setting): Promise<void> {
  for (const source of Object.values(scripts.latch)) await redis.script('LOAD', source);
}

/** When it ended, on the clock of `performance.now`. */
export const endOfWait = (locks: Locks, key: string, options: object = wokenByCount): Promise<number> =>
  locks
    .countDownLatch(key)
    .await(options)
    .then(() => performance.now());

export async function latchChildren(setting: Setting, count: number): Promise<Child<LatchMessage>[]> {
  const forked = Array.from({ length: count }, () => setting.fork<LatchMessage>('latch.child.ts', setting.server.connection));
  const children = await Promise.all(forked);
  await Promise.all(children.map((child) => child.waitFor('ready', { within: 30_000 })));
  return children;
}
