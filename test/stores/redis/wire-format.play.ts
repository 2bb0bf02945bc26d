// Plays every verb of the Redis store with owners that are the same in each run, and writes down what is then at the server.
import type { Redis } from 'ioredis';
import { Locks } from 'nestjs-distributed-lock/core';
import { redisStore } from 'nestjs-distributed-lock/redis';
import type { AcquireReply, LeaseDriver } from '../../../lib/core/store/lease-driver.js';
import type { LockStore } from '../../../lib/core/store/lock-store.js';
import { eventually } from '../../support/eventually.js';
import { dumpOf, named, ownerOf, spanOf, tokenOf, type Names } from './wire-format.text.js';

/** Milliseconds that a step may take: an offer, which lasts a second, must still be there when it is written down. */
const LONGEST_STEP = 600;
export const LEASE = 100_000;
const MIN_HOLD = 30_000;

/** A step took too long: what it left may have expired before it was read. */
export class TooSlow extends Error {}

type Step = (what: string, ask: () => Promise<unknown>) => Promise<void>;
/** Two processes: the second one has an inbox, the first one has not opened its own. */
interface Stage {
  readonly mine: Required<LockStore>;
  readonly theirs: Required<LockStore>;
  readonly step: Step;
}

export const one = (owner: string, more: object = {}) => ({
  key: 'order:42',
  owner: ownerOf(owner),
  ttl: LEASE,
  tokens: 1,
  queue: false,
  ...more,
});
export const back = (owner: string, keepFor = 0) => ({ key: 'order:42', owner: ownerOf(owner), keepFor });
export const permits = (count: number, all: number, rank: 0 | 1 = 0) => ({ share: { count, permits: all, rank } });
const operation = (number: number) => ({ key: 'tasks', ttl: LEASE, operation: { line: 'line:0', number } });
const renew = (driver: LeaseDriver, owner: string, ttl = 2 * LEASE) =>
  Promise.all(driver.renew([{ key: 'order:42', owner: ownerOf(owner), ttl }]));

export const SCENES: Record<string, (stage: Stage) => Promise<void>> = {
  'a mutex that nobody waits for': async ({ mine: { mutex }, step }) => {
    await step('A takes it', () => mutex.acquire(one('A')));
    await step('A asks again, for a block of tokens', () => mutex.acquire(one('A', { tokens: 32 })));
    await step('A extends it', () => mutex.extend!({ key: 'order:42', owner: ownerOf('A'), ttl: LEASE, tokens: 32 }));
    await step('A renews it', () => renew(mutex, 'A'));
    await step('A gives it back', () => mutex.release(back('A')));
  },
  'a mutex that two wait for': async ({ mine, theirs, step }) => {
    await step('A takes it', () => mine.mutex.acquire(one('A')));
    await step('B queues, with the key of its call chain', () =>
      theirs.mutex.acquire(one('B', { queue: true, holding: ['00000000-0000-4000-8000-00000000000f order:41'] })),
    );
    await step('C queues, in a process without an inbox', () => mine.mutex.acquire(one('C', { queue: true })));
    await step('A gives it back: B is offered it', () => mine.mutex.release(back('A')));
    await step('B confirms', () => theirs.mutex.acquire(one('B', { queue: true })));
    await step('B yields it and queues again as D: C is offered it', () =>
      theirs.mutex.acquire(one('D', { queue: true, yields: ownerOf('B') })),
    );
    await step('C gives up: D is offered it', () => mine.mutex.leave({ key: 'order:42', owner: ownerOf('C') }));
  },
  'a mutex with a minHold': async ({ mine, theirs, step }) => {
    await step('A takes it', () => mine.mutex.acquire(one('A')));
    await step('B queues', () => theirs.mutex.acquire(one('B', { queue: true })));
    await step('A gives it back, to be kept', () => mine.mutex.release(back('A', MIN_HOLD)));
    await step('A repeats that', () => mine.mutex.release(back('A', MIN_HOLD)));
  },
  'a mutex that is taken away': async ({ mine, theirs, step }) => {
    const seize = { key: 'order:42', kind: 'mutex', phase: 'held', token: undefined } as const;
    await step('A takes it', () => mine.mutex.acquire(one('A')));
    await step('B queues', () => theirs.mutex.acquire(one('B', { queue: true })));
    await step('it is taken away from A: B is offered it', () => mine.inspector.seize({ ...seize, owner: ownerOf('A'), keepFor: 0 }));
    await step('it is taken away from B, and kept', () => mine.inspector.seize({ ...seize, owner: ownerOf('B'), keepFor: MIN_HOLD }));
  },
  'a mutex whose key has a hash tag': async ({ mine, theirs, step }) => {
    const tagged = { key: '{shop}:42' };
    await step('A takes it', () => mine.mutex.acquire(one('A', tagged)));
    await step('B queues', () => theirs.mutex.acquire(one('B', { ...tagged, queue: true })));
  },
  'a semaphore': async ({ mine: { semaphore }, theirs, step }) => {
    await step('A takes three of five permits', () => semaphore.acquire(one('A', permits(3, 5))));
    await step('B takes one', () => semaphore.acquire(one('B', permits(1, 5))));
    await step('C queues for two', () => theirs.semaphore.acquire(one('C', { ...permits(2, 5), queue: true })));
    await step('A renews', () => renew(semaphore, 'A'));
    await step('A gives its permits back, to be kept', () => semaphore.release(back('A', MIN_HOLD)));
    await step('B gives its permit back: C is offered two', () => semaphore.release(back('B')));
    await step('D takes one, of six by now', () => semaphore.acquire(one('D', permits(1, 6))));
  },
  'a read/write lock': async ({ mine: { readWriteLock: mine }, theirs: { readWriteLock: theirs }, step }) => {
    const whole = (rank: 0 | 1) => permits(Infinity, Infinity, rank);
    const part = (rank: 0 | 1) => permits(1, Infinity, rank);
    await step('A writes', () => mine.write.acquire(one('A', whole(0))));
    await step('A reads under its own lock, as B', () =>
      mine.read.acquire(one('B', { share: { count: 1, permits: Infinity, rank: 1, beside: ownerOf('A') } })),
    );
    await step('C queues to read, behind all writers', () => theirs.read.acquire(one('C', { ...part(1), queue: true })));
    await step('D queues to write', () => theirs.write.acquire(one('D', { ...whole(0), queue: true })));
    await step('A has written', () => mine.write.release(back('A')));
    await step('B has read: D is offered it', () => mine.read.release(back('B')));
    await step('D confirms', () => theirs.write.acquire(one('D', { ...whole(0), queue: true })));
    await step('D gives it back: C is offered it', () => theirs.write.release(back('D')));
  },
  'a count-down latch': async ({ mine: { countDownLatch: mine }, theirs: { countDownLatch: theirs }, step }) => {
    await step('it is set to 2', () => mine.trySetCount({ ...operation(1), count: 2 }));
    await step('A waits', () => theirs.look({ key: 'tasks', owner: ownerOf('A'), queue: true }));
    await step('B waits', () => theirs.look({ key: 'tasks', owner: ownerOf('B'), queue: true }));
    await step('B gives up', () => theirs.leave({ key: 'tasks', owner: ownerOf('B') }));
    await step('a task is done', () => mine.countDown(operation(2)));
    await step('that is repeated', () => mine.countDown(operation(2)));
    await step('the other task is done: A is notified', () => mine.countDown(operation(3)));
    await step('it is set anew', () => mine.trySetCount({ ...operation(4), count: 1 }));
  },
};

/** The text of one scene. @throws {TooSlow} */
export async function play(
  scene: string,
  { redis, ears, connection }: { redis: Redis; ears: Redis; connection: object },
): Promise<string[]> {
  const open = () => redisStore({ options: connection, requestTimeout: 5000 }) as Required<LockStore>;
  const [mine, theirs] = [open(), open()];
  try {
    await theirs.mutex.wakeUps!.open((message) => {
      throw new Error(message);
    });
    const names = { inboxes: [mine.bus.connection, theirs.bus.connection], tokens: [] };
    const lines: string[] = [];
    const step = stepsTo(lines, names, redis, ears);
    await SCENES[scene]!({ mine, theirs, step });
    return lines;
  } finally {
    await Promise.all([mine.close(), theirs.close()]);
  }
}

function stepsTo(lines: string[], names: Names, redis: Redis, ears: Redis): Step {
  const heard: string[] = [];
  let synced = (_: string): void => undefined;
  ears.on('pmessage', (_, channel: string, message: string) => {
    if (channel === 'sync') synced(message);
    else heard.push(`  ${named(channel, names)} ← ${JSON.stringify(named(message, names))}`);
  });
  return async (what, ask) => {
    const start = performance.now();
    heard.length = 0;
    const reply = await ask();
    const dump = dumpOf(redis, record(reply, names));
    const text = await dump.catch((error: unknown) => new Error(String(error)));
    if (performance.now() > start + LONGEST_STEP) throw new TooSlow(what);
    if (text instanceof Error) throw text;
    await new Promise<void>((resolve) => {
      synced = () => resolve();
      void redis.publish('sync', what);
    });
    lines.push(`> ${what}`, `< ${shown(reply, names)}`, ...heard, ...text, '');
  };
}

/** Gives a new token its number. */
function record(reply: unknown, names: Names): Names {
  const token = (reply as { token?: number | null } | undefined)?.token;
  if (typeof token === 'number' && !tokenOf(token, names).startsWith('<')) names.tokens.push(token);
  return names;
}

function shown(reply: unknown, names: Names): string {
  const { token, remaining, ...rest } = Object(reply) as Partial<AcquireReply> & { token?: number; remaining?: number };
  if (typeof reply !== 'object' || reply === null || Array.isArray(reply)) return JSON.stringify(reply) ?? 'nothing';
  const times = {
    ...(token !== undefined && { token: tokenOf(token, names) }),
    ...(remaining !== undefined && { remaining: spanOf(remaining) }),
  };
  return named(JSON.stringify({ ...rest, ...times }), names);
}

/** What operators' requests send over the bus, and what is left of them. Messages come in any order. */
export async function playOperator({ redis, ears, connection }: { redis: Redis; ears: Redis; connection: object }): Promise<string[]> {
  const open = (app: string) => new Locks(redisStore({ options: connection }), { app, logger: false, shutdownTimeout: 0 });
  const [holder, other, operator] = [open('shop'), open('shop'), open('operator')];
  const heard = new Set<string>();
  try {
    const lease = await holder.acquire('order:42', { keyTimeout: LEASE, label: 'OrderService.pay' });
    // A process has an inbox, and hears operators, once something lasts in it.
    const waiter = other.acquire('order:42', { keyTimeout: LEASE, waitTimeout: LEASE, label: 'OrderService.cancel' });
    waiter.catch(() => undefined);
    ears.on('pmessage', (_, channel: string, message: string) => {
      if (message.startsWith('{')) heard.add(`  ${channel} ← ${JSON.stringify(JSON.parse(message), outOfTime)}`);
    });
    await eventually(async () => (await redis.zcard('{order:42}:queue')) === 1);
    await operator.inspect('order:42');
    await operator.forceRelease('order:42', { owner: lease.owner, reason: 'stuck', by: 'anna', grace: 0 });
    await (await waiter).release();
    await eventually(() => heard.size > 2);
  } finally {
    await Promise.all([holder, other, operator].map((locks) => locks.close()));
  }
  const [note] = await redis.xrange('nestjs-distributed-lock:audit', '-', '+');
  return [...[...heard].sort(), `  nestjs-distributed-lock:audit → stream: ${JSON.stringify(note![1].map(anonymous))}`];
}

const OWNER = /\S+@[^@\s]*:\d+:[0-9a-f-]{36}/g;
const anonymous = (text: string): string =>
  text
    .replace(OWNER, '<owner>')
    .replace(/^nestjs-distributed-lock:inbox:.*/, '<inbox>')
    .replace(/^[0-9a-f-]{36}(\/[0-9a-f]{8})?$/, (_, part) => (part ? '<uuid>/<part>' : '<uuid>'));

function outOfTime(_: string, value: unknown): unknown {
  if (typeof value === 'string') return anonymous(value);
  return typeof value === 'number' && value > 1 ? '<number>' : value;
}
