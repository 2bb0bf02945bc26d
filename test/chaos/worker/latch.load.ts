import type { CountDownLatch, Locks } from '../../../lib/core.js';
import type { Context } from './context.js';
import { LATCH } from './keys.js';
import { describe, outcomeOf } from './outcome.js';

/** Done by any worker that takes it. */
interface Job {
  op: 'down' | 'await';
  key: string;
  round: number;
}

const JOBS = 'latch-jobs';
/** ms: longer than any run is judged by */
const TIME_TO_LIVE = 60_000;
const PATIENCE = { set: 2_000, down: 5_000, await: 8_000 };

/** Every other caller sets latches, the others count them down and wait for them. */
export async function callLatch(context: Context, locks: Locks, caller: number): Promise<void> {
  return caller === 0 ? setLatch(context, locks) : doJob(context, locks);
}

/** Sets a latch again and again, as long as all is well. */
async function setLatch(context: Context, locks: Locks): Promise<void> {
  const { random, resource, stopping } = context;
  const key = `${LATCH}${context.nextId()}`;
  for (let round = 1; round === 1 || (random.chance(0.7) && !stopping.aborted); round++) {
    const count = random.int(1, 5);
    if ((await change(context, locks, 'set', key, round, count)) !== 'true') return;
    const jobs: Job[] = [
      ...Array.from({ length: count }, () => ({ op: 'down' as const, key, round })),
      ...Array.from({ length: random.int(0, 2) }, () => ({ op: 'await' as const, key, round })),
    ];
    await resource.rpush(JOBS, ...random.shuffle(jobs).map((job) => JSON.stringify(job)));
    if ((await change(context, locks, 'await', key, round, 0)) !== 'open') return;
  }
}

async function doJob(context: Context, locks: Locks): Promise<void> {
  const text = await context.resource.lpop(JOBS);
  if (text === null) return context.pause(20);
  const { op, key, round } = JSON.parse(text) as Job;
  // Nobody waits for a waiter: else all could wait, and none would count.
  const done = change(context, locks, op, key, round, 0);
  if (op === 'down') await done;
}

/** One request of a latch, with its history. Never rejects. */
async function change(
  context: Context,
  locks: Locks,
  op: keyof typeof PATIENCE,
  key: string,
  round: number,
  count: number,
): Promise<string> {
  const { history, random } = context;
  const id = context.nextId();
  const retryInterval = random.pick([50, 200, 500]);
  const patience = PATIENCE[op];
  history.write({ e: 'latch', id, op, key, round, count, patience, retryInterval, requestTimeout: locks.store.requestTimeout });
  let result: string;
  try {
    const latch = locks.countDownLatch(key, { timeToLive: TIME_TO_LIVE });
    result = await ask(latch, op, count, { waitTimeout: patience, retryInterval });
  } catch (error) {
    result = `${outcomeOf(error)}: ${describe(error)}`;
  }
  history.write({ e: 'latched', id, result });
  return result;
}

async function ask(latch: CountDownLatch, op: keyof typeof PATIENCE, count: number, options: object): Promise<string> {
  if (op === 'set') return String(await latch.trySetCount(count, options));
  if (op === 'down') return String(await latch.countDown(options));
  await latch.await(options);
  return 'open';
}
